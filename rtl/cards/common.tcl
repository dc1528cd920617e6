# SPDX-License-Identifier: Apache-2.0
# What the platforms share: interface ports for the accelerator's buses, and shorthands.

# An IP, with its parameters.
proc ip {kind name {parameters {}}} {
  create_bd_cell -type ip -vlnv xilinx.com:ip:$kind $name
  set settings {}
  foreach {parameter value} $parameters { lappend settings CONFIG.$parameter $value }
  if {[llength $settings] > 0} { set_property -dict $settings [get_bd_cells $name] }
}

# Connects pins to a source, which is a pin or, with a leading @, a port.
proc wire {source args} {
  set from [expr {[string index $source 0] eq "@" ? [get_bd_ports [string range $source 1 end]] : [get_bd_pins $source]}]
  foreach pin $args { connect_bd_net $from [get_bd_pins $pin] }
}

# Connects two interfaces; those with a leading @ are ports.
proc bus {master slave} {
  foreach side {master slave} {
    set name [set $side]
    set $side [expr {[string index $name 0] eq "@" ? [get_bd_intf_ports [string range $name 1 end]] : [get_bd_intf_pins $name]}]
  }
  connect_bd_intf_net $master $slave
}

# A port of the platform's module at which the accelerator is the master.
proc accelerator_bus {name bits mode} {
  set port [create_bd_intf_port -mode Slave -vlnv xilinx.com:interface:aximm_rtl:1.0 $name]
  set_property -dict [list CONFIG.PROTOCOL AXI4 CONFIG.ADDR_WIDTH 64 CONFIG.DATA_WIDTH $bits CONFIG.READ_WRITE_MODE $mode CONFIG.ID_WIDTH 0 \
    CONFIG.HAS_BURST 1 CONFIG.HAS_LOCK 0 CONFIG.HAS_PROT 0 CONFIG.HAS_CACHE 0 CONFIG.HAS_QOS 0 CONFIG.HAS_REGION 0 CONFIG.SUPPORTS_NARROW_BURST 0] $port
}

# Ports of every platform: clock and reset of the accelerator, its buses, its registers, its interrupt and the clock that this is taken by.
proc accelerator_ports {ports port_bits} {
  accelerator_bus HOST 32 READ_WRITE
  accelerator_bus STATE $port_bits READ_WRITE
  set all {HOST STATE CSR}
  for {set n 0} {$n < $ports} {incr n} {
    set name [format WEIGHTS_%02d $n]
    accelerator_bus $name $port_bits READ_ONLY
    lappend all $name
  }
  set csr [create_bd_intf_port -mode Master -vlnv xilinx.com:interface:aximm_rtl:1.0 CSR]
  set_property -dict [list CONFIG.PROTOCOL AXI4LITE CONFIG.ADDR_WIDTH 32 CONFIG.DATA_WIDTH 32 CONFIG.HAS_PROT 1] $csr
  set clock [create_bd_port -dir O -type clk clk]
  set_property CONFIG.ASSOCIATED_BUSIF [join $all :] $clock
  create_bd_port -dir O -type rst rst_n
  create_bd_port -dir O -type clk link_clk
  create_bd_port -dir I irq
}

# A crossbar of so many masters to one slave, all of it on the clocks and the reset that are named.
proc crossbar {name masters clocks reset} {
  ip smartconnect:1.0 $name [list NUM_SI $masters NUM_MI 1 NUM_CLKS [llength $clocks]]
  set n 0
  foreach clock $clocks {
    wire $clock $name/[expr {$n == 0 ? "aclk" : "aclk$n"}]
    incr n
  }
  wire $reset $name/aresetn
}
