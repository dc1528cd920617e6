// SPDX-License-Identifier: Apache-2.0
// What computes in the batch machine: sequencer, weight stream, array, finish, rank and aux unit, and the seats' memories (docs/blocks/batch_top.md).
module batch_engine
  import gharial_pkg::*;
  import gharial_config_pkg::*;
  import seat_pkg::*;
#(
    parameter string Multiplier = "GENERIC"
) (
    input logic clk_i,
    input logic rst_i,
    input logic hold_i, // soft reset: no new bursts

    input header_t        header_i,
    input places_t        places_i,
    input logic           load_valid_i,
    input space_e         load_space_i,
    input logic    [26:0] load_addr_i,
    input logic    [31:0] load_data_i,

    // The seater.
    input  logic        [         1:0]      batch_valid_i,
    output logic        [         1:0]      batch_ready_o,
    input  batch_t                          batch_i           [2],
    input  logic        [         1:0][1:0] fetched_i,
    output logic        [         1:0]      thread_valid_o,
    input  logic        [         1:0]      thread_ready_i,
    output batch_done_t                     thread_o          [2],
    input  logic                            act_we_i,
    output logic                            act_ready_o,
    input  logic        [SeatActW-1:0]      act_waddr_i,
    input  logic        [  8*Cols-1:0]      act_wdata_i,
    input  logic                            job_valid_i,
    output logic                            job_ready_o,
    input  move_job_t                       job_i,
    output logic                            fetch_done_o,
    output logic        [         7:0]      fetch_tag_o,
    output logic                            fetch_failed_o,
    output logic        [        63:0]      fetch_error_addr_o,
    output logic                            store_done_o,
    output logic        [         7:0]      store_tag_o,
    output logic                            store_failed_o,
    output logic        [        63:0]      store_error_addr_o,

    // Words of results, and whose they are.
    output logic             result_valid_o,
    input  logic             result_ready_i,
    output logic [     63:0] result_addr_o,
    output logic [     31:0] result_data_o,
    output logic [WorkW-1:0] result_work_o,

    // Weights.
    output logic [      Ports-1:0] m_axi_weights_arvalid_o,
    input  logic [      Ports-1:0] m_axi_weights_arready_i,
    output logic [           63:0] m_axi_weights_araddr_o [Ports],
    output logic [            7:0] m_axi_weights_arlen_o  [Ports],
    input  logic [      Ports-1:0] m_axi_weights_rvalid_i,
    output logic [      Ports-1:0] m_axi_weights_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_weights_rdata_i  [Ports],
    input  logic [            1:0] m_axi_weights_rresp_i  [Ports],
    input  logic [      Ports-1:0] m_axi_weights_rlast_i,

    // State and embedding.
    output logic                   m_axi_state_arvalid_o,
    input  logic                   m_axi_state_arready_i,
    output logic [           63:0] m_axi_state_araddr_o,
    output logic [            7:0] m_axi_state_arlen_o,
    input  logic                   m_axi_state_rvalid_i,
    output logic                   m_axi_state_rready_o,
    input  logic [8*PortBytes-1:0] m_axi_state_rdata_i,
    input  logic [            1:0] m_axi_state_rresp_i,
    input  logic                   m_axi_state_rlast_i,
    output logic                   m_axi_state_awvalid_o,
    input  logic                   m_axi_state_awready_i,
    output logic [           63:0] m_axi_state_awaddr_o,
    output logic [            7:0] m_axi_state_awlen_o,
    output logic                   m_axi_state_wvalid_o,
    input  logic                   m_axi_state_wready_i,
    output logic [8*PortBytes-1:0] m_axi_state_wdata_o,
    output logic [  PortBytes-1:0] m_axi_state_wstrb_o,
    output logic                   m_axi_state_wlast_o,
    input  logic                   m_axi_state_bvalid_i,
    output logic                   m_axi_state_bready_o,
    input  logic [            1:0] m_axi_state_bresp_i,

    output logic bus_idle_o,  // nothing outstanding on the ports above

    // For the counters, and the watchdog.
    output logic        active_o,
    output logic        starved_o,
    output logic        blocked_o,
    output logic        waits_o,
    output logic        idle_o,
    output logic [31:0] instruction_o
);
  // Sequencer.
  logic lost;
  logic [63:0] lost_addr;
  logic stream_valid, stream_ready, array_valid, array_ready, finish_valid, finish_ready;
  logic [23:0] stream_tile;
  logic [15:0] stream_tiles;
  segment_t segment;
  logic retire_valid;
  thread_e retire_thread;
  logic aux_valid, aux_ready, aux_done, aux_failed;
  seat_aux_job_t aux_job;
  logic [Seats-1:0][15:0] aux_tokens;
  seats_t aux_zeros;
  logic [63:0] aux_error_addr;
  logic max_valid, rank_valid, rank_ready, rank_done, word_valid, word_ready;
  logic [SeatW-1:0] max_seat;
  logic [15:0] max_class;
  logic signed [15:0] max_logit;
  rank_job_t rank_job;
  logic [63:0] word_addr;
  logic [31:0] word_data;
  logic batch_valid[2], batch_ready[2], thread_valid[2], thread_ready[2];
  logic [1:0] fetched[2];
  for (genvar t = 0; t < 2; t++) begin : gen_thread
    assign batch_valid[t] = batch_valid_i[t];
    assign batch_ready_o[t] = batch_ready[t];
    assign thread_valid_o[t] = thread_valid[t];
    assign thread_ready[t] = thread_ready_i[t];
    assign fetched[t] = fetched_i[t];
  end

  batch_sequencer u_sequencer (
      .clk_i,
      .rst_i,
      .header_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceCode),
      .load_addr_i,
      .load_data_i,
      .batch_valid_i(batch_valid),
      .batch_ready_o(batch_ready),
      .batch_i,
      .fetched_i(fetched),
      .done_valid_o(thread_valid),
      .done_ready_i(thread_ready),
      .done_o(thread_o),
      .stream_valid_o(stream_valid),
      .stream_ready_i(stream_ready),
      .stream_tile_o(stream_tile),
      .stream_tiles_o(stream_tiles),
      .array_valid_o(array_valid),
      .array_ready_i(array_ready),
      .finish_valid_o(finish_valid),
      .finish_ready_i(finish_ready),
      .segment_o(segment),
      .retire_valid_i(retire_valid),
      .retire_thread_i(retire_thread),
      .lost_i(lost),
      .lost_addr_i(lost_addr),
      .aux_valid_o(aux_valid),
      .aux_ready_i(aux_ready),
      .aux_job_o(aux_job),
      .aux_tokens_o(aux_tokens),
      .aux_zeros_o(aux_zeros),
      .aux_done_i(aux_done),
      .aux_failed_i(aux_failed),
      .aux_error_addr_i(aux_error_addr),
      .max_valid_i(max_valid),
      .max_seat_o(max_seat),
      .max_class_i(max_class),
      .rank_valid_o(rank_valid),
      .rank_ready_i(rank_ready),
      .rank_job_o(rank_job),
      .rank_done_i(rank_done),
      .word_valid_i(word_valid),
      .word_ready_o(word_ready),
      .word_addr_i(word_addr),
      .word_data_i(word_data),
      .result_valid_o,
      .result_ready_i,
      .result_addr_o,
      .result_data_o,
      .result_work_o,
      .waits_o,
      .idle_o,
      .instruction_o
  );

  // Weights, products, sums.
  logic [15:0] weight_bytes;
  logic stream_idle, seats_idle, tile_valid, tile_ready;
  logic [8*Cols-1:0] tile[Rows];
  logic act_en, res_valid, res_ready, res_last;
  logic [SeatActW-1:0] act_addr;
  logic [8*Cols-1:0] act_data;
  logic signed [31:0] res_sums[4*Lanes];
  logic [SeatW-1:0] res_seat;
  logic [1:0] res_vector;
  logic [15:0] res_slice;

  weight_stream u_stream (
      .clk_i,
      .rst_i,
      .hold_i,
      .base_i(places_i.weights),
      .seg_valid_i(stream_valid),
      .seg_ready_o(stream_ready),
      .seg_tile_i(stream_tile),
      .seg_tiles_i(stream_tiles),
      .tile_valid_o(tile_valid),
      .tile_ready_i(tile_ready),
      .tile_o(tile),
      .m_axi_arvalid_o(m_axi_weights_arvalid_o),
      .m_axi_arready_i(m_axi_weights_arready_i),
      .m_axi_araddr_o(m_axi_weights_araddr_o),
      .m_axi_arlen_o(m_axi_weights_arlen_o),
      .m_axi_rvalid_i(m_axi_weights_rvalid_i),
      .m_axi_rready_o(m_axi_weights_rready_o),
      .m_axi_rdata_i(m_axi_weights_rdata_i),
      .m_axi_rresp_i(m_axi_weights_rresp_i),
      .m_axi_rlast_i(m_axi_weights_rlast_i),
      .error_o(lost),
      .error_addr_o(lost_addr),
      .idle_o(stream_idle),
      .bytes_o(weight_bytes)
  );

  array_unit #(
      .Multiplier(Multiplier)
  ) u_array (
      .clk_i,
      .rst_i,
      .seg_valid_i(array_valid),
      .seg_ready_o(array_ready),
      .seg_i(segment),
      .tile_valid_i(tile_valid),
      .tile_ready_o(tile_ready),
      .tile_i(tile),
      .act_en_o(act_en),
      .act_addr_o(act_addr),
      .act_data_i(act_data),
      .res_valid_o(res_valid),
      .res_ready_i(res_ready),
      .res_sums_o(res_sums),
      .res_seat_o(res_seat),
      .res_vector_o(res_vector),
      .res_slice_o(res_slice),
      .res_last_o(res_last),
      .active_o,
      .starved_o,
      .blocked_o
  );

  logic finish_cell_re, finish_cell_we, finish_act_we;
  logic [SeatCellW-1:0] finish_cell_raddr, finish_cell_waddr;
  logic [4*Rows-1:0] cell_rdata, finish_cell_wdata;
  logic [Rows/4-1:0] finish_cell_wmask;
  logic [SeatActW-1:0] finish_act_waddr;
  logic [8*Cols-1:0] finish_act_wdata;
  logic [Cols-1:0] finish_act_wmask;
  logic logit_valid, logit_last;
  logic [SeatW-1:0] logit_seat;
  logic [15:0] logit_slice;
  logic signed [15:0] logit_data[4*Lanes];
  finish_unit u_finish (
      .clk_i,
      .rst_i,
      .load_valid_i,
      .load_space_i,
      .load_addr_i,
      .load_data_i,
      .seg_valid_i(finish_valid),
      .seg_ready_o(finish_ready),
      .seg_i(segment),
      .res_valid_i(res_valid),
      .res_ready_o(res_ready),
      .res_sums_i(res_sums),
      .res_seat_i(res_seat),
      .res_vector_i(res_vector),
      .res_slice_i(res_slice[slice_pkg::SliceW-1:0]),
      .res_last_i(res_last),
      .cell_re_o(finish_cell_re),
      .cell_raddr_o(finish_cell_raddr),
      .cell_rdata_i(cell_rdata),
      .cell_we_o(finish_cell_we),
      .cell_waddr_o(finish_cell_waddr),
      .cell_wdata_o(finish_cell_wdata),
      .cell_wmask_o(finish_cell_wmask),
      .act_we_o(finish_act_we),
      .act_waddr_o(finish_act_waddr),
      .act_wdata_o(finish_act_wdata),
      .act_wmask_o(finish_act_wmask),
      .logit_valid_o(logit_valid),
      .logit_seat_o(logit_seat),
      .logit_slice_o(logit_slice),
      .logit_data_o(logit_data),
      .logit_last_o(logit_last),
      .retire_valid_o(retire_valid),
      .retire_thread_o(retire_thread)
  );

  rank_unit u_rank (
      .clk_i,
      .rst_i,
      .load_valid_i(load_valid_i && load_space_i == SpaceTables),
      .load_addr_i(load_addr_i[15:0]),
      .load_data_i,
      .classes_i(header_i.classes),
      .logit_bits_i(header_i.logit_bits),
      .logit_valid_i(logit_valid),
      .logit_seat_i(logit_seat),
      .logit_slice_i(logit_slice),
      .logit_data_i(logit_data),
      .logit_last_i(logit_last),
      .max_valid_o(max_valid),
      .max_seat_i(max_seat),
      .max_class_o(max_class),
      .max_logit_o(max_logit),
      .job_valid_i(rank_valid),
      .job_ready_o(rank_ready),
      .job_i(rank_job),
      .job_done_o(rank_done),
      .result_valid_o(word_valid),
      .result_ready_i(word_ready),
      .result_addr_o(word_addr),
      .result_data_o(word_data)
  );

  batch_seats u_seats (
      .clk_i,
      .rst_i,
      .hold_i,
      .embed_base_i(places_i.embedding),
      .array_en_i(act_en),
      .array_addr_i(act_addr),
      .array_data_o(act_data),
      .finish_act_we_i(finish_act_we),
      .finish_act_addr_i(finish_act_waddr),
      .finish_act_data_i(finish_act_wdata),
      .finish_act_mask_i(finish_act_wmask),
      .finish_cell_re_i(finish_cell_re),
      .finish_cell_raddr_i(finish_cell_raddr),
      .cell_rdata_o(cell_rdata),
      .finish_cell_we_i(finish_cell_we),
      .finish_cell_waddr_i(finish_cell_waddr),
      .finish_cell_wdata_i(finish_cell_wdata),
      .finish_cell_wmask_i(finish_cell_wmask),
      .loader_we_i(act_we_i),
      .loader_ready_o(act_ready_o),
      .loader_addr_i(act_waddr_i),
      .loader_data_i(act_wdata_i),
      .aux_valid_i(aux_valid),
      .aux_ready_o(aux_ready),
      .aux_job_i(aux_job),
      .aux_done_o(aux_done),
      .aux_failed_o(aux_failed),
      .aux_error_addr_o(aux_error_addr),
      .aux_tokens_i(aux_tokens),
      .aux_zeros_i(aux_zeros),
      .job_valid_i,
      .job_ready_o,
      .job_i,
      .fetch_done_o,
      .fetch_tag_o,
      .fetch_failed_o,
      .fetch_error_addr_o,
      .store_done_o,
      .store_tag_o,
      .store_failed_o,
      .store_error_addr_o,
      .idle_o(seats_idle),
      .m_axi_arvalid_o(m_axi_state_arvalid_o),
      .m_axi_arready_i(m_axi_state_arready_i),
      .m_axi_araddr_o(m_axi_state_araddr_o),
      .m_axi_arlen_o(m_axi_state_arlen_o),
      .m_axi_rvalid_i(m_axi_state_rvalid_i),
      .m_axi_rready_o(m_axi_state_rready_o),
      .m_axi_rdata_i(m_axi_state_rdata_i),
      .m_axi_rresp_i(m_axi_state_rresp_i),
      .m_axi_rlast_i(m_axi_state_rlast_i),
      .m_axi_awvalid_o(m_axi_state_awvalid_o),
      .m_axi_awready_i(m_axi_state_awready_i),
      .m_axi_awaddr_o(m_axi_state_awaddr_o),
      .m_axi_awlen_o(m_axi_state_awlen_o),
      .m_axi_wvalid_o(m_axi_state_wvalid_o),
      .m_axi_wready_i(m_axi_state_wready_i),
      .m_axi_wdata_o(m_axi_state_wdata_o),
      .m_axi_wstrb_o(m_axi_state_wstrb_o),
      .m_axi_wlast_o(m_axi_state_wlast_o),
      .m_axi_bvalid_i(m_axi_state_bvalid_i),
      .m_axi_bready_o(m_axi_state_bready_o),
      .m_axi_bresp_i(m_axi_state_bresp_i)
  );

  assign bus_idle_o = stream_idle && seats_idle;

  logic unused;
  assign unused = &{1'b0, max_logit, res_slice, weight_bytes, places_i};
endmodule
