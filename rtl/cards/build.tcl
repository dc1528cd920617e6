# SPDX-License-Identifier: Apache-2.0
# Builds a card's image with Vivado, in batch mode: vivado -mode batch -source rtl/cards/build.tcl -tclargs FACTS
# FACTS: what scripts/cards/tcl.py wrote of the card. The image and reports go to the folder that it names. Ends with an error where timing is missed.

source [lindex $argv 0]

create_project -force gharial $folder/vivado -part $part
set_property board_part $board_part [current_project]
set_property target_language Verilog [current_project]
add_files -norecurse $sources
set_property file_type SystemVerilog [get_files $sources]
add_files -fileset constrs_1 -norecurse $constraints

create_bd_design $design
source $common
source $platform_script
validate_bd_design
save_bd_design
set made [get_files $design.bd]
generate_target all $made
add_files -norecurse [make_wrapper -files $made -top]
set_property top $top [current_fileset]
update_compile_order -fileset sources_1

launch_runs synth_1 -jobs 4
wait_on_run synth_1
if {[get_property PROGRESS [get_runs synth_1]] ne "100%"} { error "synthesis failed; see $folder/vivado" }
set_property STEPS.PHYS_OPT_DESIGN.IS_ENABLED true [get_runs impl_1]
launch_runs impl_1 -to_step write_bitstream -jobs 4
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} { error "implementation failed; see $folder/vivado" }

open_run impl_1
report_utilization -file $folder/utilization.txt
report_timing_summary -file $folder/timing.txt
set slack [get_property SLACK [get_timing_paths -max_paths 1 -setup]]
if {$slack < 0} { error "timing is missed by [expr {-$slack}] ns; see $folder/timing.txt" }
file copy -force $folder/vivado/gharial.runs/impl_1/$top.bit $folder/image.bit
puts "image: $folder/image.bit, slack $slack ns"
