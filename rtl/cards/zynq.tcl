# SPDX-License-Identifier: Apache-2.0
# Platform of a Zynq UltraScale+ module: its processors are the host, its DDR4 the memory. Weight ports have the four high-performance ports; host block and state mover have the coherent ones.
# Linux finds the registers at 0xA0000000 and the memory where rtl/cards.yaml says (docs/cards.md).

accelerator_ports $ports $port_bits
if {$ports != 4 || $port_bits != 128} { error "the processors have four ports of 128 bits, the configuration $ports of $port_bits" }

ip zynq_ultra_ps_e:3.5 processors
apply_bd_automation -rule xilinx.com:bd_rule:zynq_ultra_ps_e -config {apply_board_preset 1} [get_bd_cells processors]
# HPM0 for registers; HPC0, HPC1 (0, 1) and HP0 to HP3 (2 to 5) for memory.
set settings {CONFIG.PSU__USE__M_AXI_GP0 1 CONFIG.PSU__USE__M_AXI_GP1 0 CONFIG.PSU__USE__M_AXI_GP2 0 CONFIG.PSU__USE__IRQ0 1 CONFIG.PSU__FPGA_PL0_ENABLE 1}
for {set n 0} {$n < 6} {incr n} { lappend settings CONFIG.PSU__USE__S_AXI_GP$n 1 CONFIG.PSU__SAXIGP${n}__DATA_WIDTH 128 }
set_property -dict $settings [get_bd_cells processors]
wire @irq processors/pl_ps_irq0

ip clk_wiz:6.0 clocks [list PRIM_SOURCE No_buffer CLKOUT1_REQUESTED_OUT_FREQ $clock_mhz USE_RESET false]
wire processors/pl_clk0 clocks/clk_in1
ip proc_sys_reset:5.0 reset
wire clocks/clk_out1 reset/slowest_sync_clk
wire clocks/locked reset/dcm_locked
wire processors/pl_resetn0 reset/ext_reset_in
connect_bd_net [get_bd_ports clk] [get_bd_pins clocks/clk_out1]
connect_bd_net [get_bd_ports link_clk] [get_bd_pins clocks/clk_out1]
connect_bd_net [get_bd_ports rst_n] [get_bd_pins reset/peripheral_aresetn]

# Each master has a port of its own: nothing is shared but the memory.
foreach {master slave} {HOST HPC0 STATE HPC1 WEIGHTS_00 HP0 WEIGHTS_01 HP1 WEIGHTS_02 HP2 WEIGHTS_03 HP3} {
  set path to_[string tolower $slave]
  crossbar $path 1 clocks/clk_out1 reset/peripheral_aresetn
  bus @$master $path/S00_AXI
  bus $path/M00_AXI processors/S_AXI_${slave}_FPD
  wire clocks/clk_out1 processors/saxi[string tolower $slave]_fpd_aclk
}
crossbar registers 1 clocks/clk_out1 reset/peripheral_aresetn
wire clocks/clk_out1 processors/maxihpm0_fpd_aclk
bus processors/M_AXI_HPM0_FPD registers/S00_AXI
bus registers/M00_AXI @CSR

assign_bd_address -offset 0xA0000000 -range 64K -target_address_space [get_bd_addr_spaces processors/Data] [get_bd_addr_segs CSR/Reg]
assign_bd_address
