# Packages the accelerator as an IP core for the block design or the Tcl flow of the reference switch.
#
#   vivado -mode batch -source hdl/vivado/package.tcl [-tclargs BUILD [DIRECTORY]]
#
# BUILD is slots128 (the default) or slots256. Written for Vivado 2016.4. The script is untested, because Vivado was not
# available to its authors.

set here [file dirname [file normalize [info script]]]
set build [expr {[llength $argv] > 0 ? [lindex $argv 0] : "slots128"}]
set directory [expr {[llength $argv] > 1 ? [lindex $argv 1] : "ip_$build"}]
switch $build {
    slots128 { set source iswitch_accel.v }
    slots256 { set source iswitch_accel_256.v }
    default  { error "BUILD is '$build', expected slots128 or slots256" }
}

set source [file join $here .. verilog $source]
if {![file exists $source]} {
    error "$source does not exist: write it with `cargo run --release -p hdl -- generate --build $build`"
}

create_project -force package_iswitch_accel [file join $directory project] -part xc7vx690tffg1761-3
add_files -norecurse $source
set_property top iswitch_accel [current_fileset]
update_compile_order -fileset sources_1
ipx::package_project -root_dir $directory -vendor iswitch -library net -taxonomy /UserIP -import_files
set core [ipx::current_core]
set_property name iswitch_accel $core
set_property display_name "iSwitch accelerator, $build" $core
set_property supported_families {virtex7 Production} $core

# Vivado infers the stream and register interfaces from the names of their ports. All use the same clock. A reset named
# resetn is inferred as active low.
foreach bus {s_axis m_axis} {
    if {[llength [ipx::get_bus_interfaces $bus -of_objects $core]] == 0} {
        ipx::infer_bus_interface ${bus}_tvalid xilinx.com:interface:axis_rtl:1.0 $core
    }
    ipx::associate_bus_interfaces -busif $bus -clock axis_aclk $core
}
ipx::associate_bus_interfaces -busif S_AXI -clock axis_aclk $core

ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity $core
ipx::save_core $core
puts "packaged the IP core into $directory; add this directory to ip_repo_paths"
