# SPDX-License-Identifier: Apache-2.0
# Platform of a PCIe card with HBM. Xilinx' XDMA brings the host: registers at 0 of its AXI4-Lite bus, the HBM at 0 of its memory bus, the accelerator's interrupt as user interrupt 0
# (docs/links.md). Each weight port has a port of the HBM; the last three share theirs with host block, state mover and XDMA. The HBM's own switch
# leads every port to all of the memory.

accelerator_ports $ports $port_bits
if {$ports != 32} { error "the HBM has 32 ports, the configuration $ports" }

# The host's link.
create_bd_intf_port -mode Slave -vlnv xilinx.com:interface:diff_clock_rtl:1.0 pcie_refclk
create_bd_intf_port -mode Master -vlnv xilinx.com:interface:pcie_7x_mgt_rtl:1.0 pcie_mgt
create_bd_port -dir I -type rst pcie_perst_n
set_property CONFIG.POLARITY ACTIVE_LOW [get_bd_ports pcie_perst_n]
ip util_ds_buf:2.2 pcie_clock {C_BUF_TYPE IBUFDSGTE}
bus @pcie_refclk pcie_clock/CLK_IN_D
ip xdma:4.1 xdma [list pl_link_cap_max_link_width X$lanes pl_link_cap_max_link_speed 8.0_GT/s axi_data_width 256_bit axisten_freq 250 \
  axilite_master_en true axilite_master_size 64 axilite_master_scale Kilobytes xdma_num_usr_irq 1 xdma_rnum_chnl 1 xdma_wnum_chnl 1]
wire pcie_clock/IBUF_OUT xdma/sys_clk_gt
wire pcie_clock/IBUF_DS_ODIV2 xdma/sys_clk
wire @pcie_perst_n xdma/sys_rst_n
bus xdma/pcie_mgt @pcie_mgt
wire @irq xdma/usr_irq_req
connect_bd_net [get_bd_ports link_clk] [get_bd_pins xdma/axi_aclk]

# The accelerator's clock, from the HBM's reference clock.
create_bd_intf_port -mode Slave -vlnv xilinx.com:interface:diff_clock_rtl:1.0 hbm_refclk
set_property CONFIG.FREQ_HZ 100000000 [get_bd_intf_ports hbm_refclk]
ip util_ds_buf:2.2 reference {C_BUF_TYPE IBUFDS}
ip util_ds_buf:2.2 reference_global {C_BUF_TYPE BUFG}
bus @hbm_refclk reference/CLK_IN_D
wire reference/IBUF_OUT reference_global/BUFG_I
ip clk_wiz:6.0 clocks [list PRIM_SOURCE No_buffer PRIM_IN_FREQ 100 CLKOUT1_REQUESTED_OUT_FREQ $clock_mhz USE_RESET false]
wire reference_global/BUFG_O clocks/clk_in1
ip proc_sys_reset:5.0 reset
wire clocks/clk_out1 reset/slowest_sync_clk
wire clocks/locked reset/dcm_locked
wire xdma/axi_aresetn reset/ext_reset_in
connect_bd_net [get_bd_ports clk] [get_bd_pins clocks/clk_out1]
connect_bd_net [get_bd_ports rst_n] [get_bd_pins reset/peripheral_aresetn]

# The memory.
set settings [list USER_HBM_DENSITY $hbm USER_HBM_STACK 2 USER_APB_EN false USER_SWITCH_ENABLE_00 TRUE USER_SWITCH_ENABLE_01 TRUE \
  USER_HBM_REF_CLK_0 100 USER_HBM_REF_CLK_1 100 USER_CLK_SEL_LIST0 AXI_00_ACLK USER_CLK_SEL_LIST1 AXI_16_ACLK \
  USER_AXI_INPUT_CLK_FREQ $clock_mhz USER_AXI_INPUT_CLK1_FREQ $clock_mhz]
for {set n 0} {$n < 32} {incr n} { lappend settings [format USER_SAXI_%02d $n] true }
ip hbm:1.0 hbm $settings
ip xlconstant:1.1 no_parity {CONST_WIDTH 32 CONST_VAL 0}
foreach stack {0 1} {
  wire reference_global/BUFG_O hbm/HBM_REF_CLK_$stack hbm/APB_${stack}_PCLK
  wire reset/peripheral_aresetn hbm/APB_${stack}_PRESET_N
}
for {set n 0} {$n < 32} {incr n} {
  set port [format AXI_%02d $n]
  wire clocks/clk_out1 hbm/${port}_ACLK
  wire reset/peripheral_aresetn hbm/${port}_ARESET_N
  wire no_parity/dout hbm/${port}_WDATA_PARITY
}
# Too hot: the card's own controller must be told, and cuts the power.
create_bd_port -dir O hbm_cattrip
ip util_vector_logic:2.0 too_hot {C_OPERATION or C_SIZE 1}
wire hbm/DRAM_0_STAT_CATTRIP too_hot/Op1
wire hbm/DRAM_1_STAT_CATTRIP too_hot/Op2
connect_bd_net [get_bd_ports hbm_cattrip] [get_bd_pins too_hot/Res]

# Weight ports: bursts are of 16 beats at most, as the HBM wants them.
for {set n 0} {$n < 29} {incr n} {
  set two [format %02d $n]
  ip axi_protocol_converter:2.1 weights_$two {SI_PROTOCOL AXI4 MI_PROTOCOL AXI3 READ_WRITE_MODE READ_ONLY}
  wire clocks/clk_out1 weights_$two/aclk
  wire reset/peripheral_aresetn weights_$two/aresetn
  bus @WEIGHTS_$two weights_$two/S_AXI
  bus weights_$two/M_AXI hbm/SAXI_$two
}
foreach {n other} {29 xdma/M_AXI 30 @HOST 31 @STATE} {
  set clocks_there [expr {$n == 29 ? {clocks/clk_out1 xdma/axi_aclk} : {clocks/clk_out1}}]
  crossbar shared_$n 2 $clocks_there reset/peripheral_aresetn
  bus @WEIGHTS_$n shared_$n/S00_AXI
  bus $other shared_$n/S01_AXI
  bus shared_$n/M00_AXI hbm/SAXI_$n
}

# Registers.
crossbar registers 1 {clocks/clk_out1 xdma/axi_aclk} reset/peripheral_aresetn
bus xdma/M_AXI_LITE registers/S00_AXI
bus registers/M00_AXI @CSR

assign_bd_address -offset 0x0 -range 64K -target_address_space [get_bd_addr_spaces xdma/M_AXI_LITE] [get_bd_addr_segs CSR/Reg]
assign_bd_address
