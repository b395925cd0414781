// A result waits for at most one ordinary packet: at most one ordinary packet ends while the result is offered.
reg [1:0] f_passed = 0;
always @(posedge clock) begin
    if (!result_valid || result_ready) f_passed <= 0;
    else if (f_ordinary_moves && ordinary[416]) f_passed <= f_passed + 1;
    if (reset) f_passed <= 0;
    result_waits_for_one_packet: assert (f_passed <= 1);
    assert (f_passed == 0 || f_on_result);
end
