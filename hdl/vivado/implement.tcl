# Implements the accelerator alone, out of context, and writes reports on its resources and timing.
#
#   vivado -mode batch -source hdl/vivado/implement.tcl [-tclargs BUILD [DIRECTORY]]
#
# BUILD is slots128 (the default) or slots256. Written for Vivado 2016.4, which the reference switch of the NetFPGA-SUME
# uses. The script is untested, because Vivado was not available to its authors.

set here [file dirname [file normalize [info script]]]
set build [expr {[llength $argv] > 0 ? [lindex $argv 0] : "slots128"}]
set directory [expr {[llength $argv] > 1 ? [lindex $argv 1] : "vivado_$build"}]
switch $build {
    slots128 { set source iswitch_accel.v }
    slots256 { set source iswitch_accel_256.v }
    default  { error "BUILD is '$build', expected slots128 or slots256" }
}

set source [file join $here .. verilog $source]
if {![file exists $source]} {
    error "$source does not exist: write it with `cargo run --release -p hdl -- generate --build $build`"
}

create_project -force iswitch_accel $directory -part xc7vx690tffg1761-3
add_files -norecurse $source
add_files -fileset constrs_1 -norecurse [file join $here iswitch_accel.xdc]
set_property top iswitch_accel [current_fileset]
set_property USED_IN {synthesis implementation out_of_context} [get_files iswitch_accel.xdc]
# No pins are assigned: the ports are connected to neighbouring cores.
set_property -name {STEPS.SYNTH_DESIGN.ARGS.MORE OPTIONS} -value {-mode out_of_context} -objects [get_runs synth_1]
launch_runs impl_1
wait_on_run impl_1
if {[get_property PROGRESS [get_runs impl_1]] ne "100%"} {
    error "the implementation stopped: see $directory/iswitch_accel.runs/impl_1/runme.log"
}

open_run impl_1
report_utilization -hierarchical -file [file join $directory utilization.rpt]
report_timing_summary -max_paths 10 -file [file join $directory timing.rpt]
set slack [get_property SLACK [get_timing_paths -max_paths 1 -setup]]
puts "iswitch_accel, $build: worst setup slack $slack ns at 200 MHz; reports in $directory"
