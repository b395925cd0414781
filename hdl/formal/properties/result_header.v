// The header of a result has the correct length four cycles after the segment is known.
function [31:0] f_ones(input [15:0] len);
    f_ones = len[4:0] == 0 ? 32'hffffffff : ~(32'hffffffff << len[4:0]);
endfunction
function [15:0] f_natural_len(input [8:0] floats);
    f_natural_len = floats < 3 ? 60 : 50 + 4 * floats;
endfunction

reg [72:0] f_info = 0;
reg [@WIDTH(template)@-1:0] f_template = 0;
reg [@WIDTH(head)@+@WIDTH(tail)@-1:0] f_bytes = 0;
reg f_started = 0;
reg [2:0] f_held = 0;
always @(posedge clock) begin
    f_info <= info;
    f_template <= template;
    f_bytes <= {head, tail};
    f_started <= 1;
    f_held <= info != f_info ? 0 : f_held == 7 ? 7 : f_held + 1;
end
// Number of preceding cycles in which `info` had its present value.
wire [3:0] f_since = info == f_info ? f_held + 1 : 0;

wire f_known = f_since >= 4;
always @(posedge clock) begin
    // The output module keeps the template of a result until the result has left.
    assume (!f_started || template == f_template);

    length: assert (!f_known || frame_len == f_natural_len(info[72:64]));
    keep_is_the_length: assert (!f_known || keep == f_ones(frame_len));
    stays: assert (f_since < 5 || {head, tail} == f_bytes);
end
