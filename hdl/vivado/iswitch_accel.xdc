# The data path of the reference switch runs at 200 MHz; registers and streams share its clock.
create_clock -name axis_aclk -period 5.000 [get_ports axis_aclk]

# Out of context, the core's surroundings are unknown: reserve a fifth of the period for the paths to and from it.
set_input_delay  -clock axis_aclk 1.000 [get_ports -filter {DIRECTION == IN && NAME != axis_aclk}]
set_output_delay -clock axis_aclk 1.000 [get_ports -filter {DIRECTION == OUT}]
