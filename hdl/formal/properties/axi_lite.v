// AXI4-Lite: each request gets one response, which is held until it is accepted.
reg f_b_waits = 0;
reg f_r_waits = 0;
reg [31:0] f_shown = 0;
reg f_owes_b = 0;
reg f_owes_r = 0;
reg [2:0] f_reading = 0;
wire f_write_taken = AWVALID && AWREADY;
wire f_read_taken = ARVALID && ARREADY;
always @(posedge clock) begin
    f_b_waits <= BVALID && !BREADY && !reset;
    f_r_waits <= RVALID && !RREADY && !reset;
    f_shown <= RDATA;
    if (BVALID && BREADY) f_owes_b <= 0;
    if (f_write_taken) f_owes_b <= 1;
    if (RVALID && RREADY) f_owes_r <= 0;
    if (f_read_taken) f_owes_r <= 1;
    f_reading <= f_owes_r && !RVALID ? f_reading + 1 : 0;
    if (reset) begin f_owes_b <= 0; f_owes_r <= 0; f_reading <= 0; end
end

always @(posedge clock) begin
    address_and_data_together: assert (AWREADY == WREADY && (!AWREADY || (AWVALID && WVALID)));
    answer_to_a_write_stays: assert (!f_b_waits || BVALID);
    answer_to_a_read_stays: assert (!f_r_waits || (RVALID && RDATA == f_shown));
    no_answer_unasked: assert ((!BVALID || f_owes_b) && (!RVALID || f_owes_r));
    no_second_request_before_the_answer: assert (!(f_write_taken && f_owes_b) && !(f_read_taken && f_owes_r));
    a_write_is_answered: assert (!f_owes_b || BVALID);
    a_read_is_answered: assert (f_reading < 4);

    // Invariants for the induction, with names of internal signals.
    assert (reading$q == 0 ? f_owes_r == shows$q : (f_owes_r && !shows$q && f_reading + 1 == reading$q));
    assert (f_owes_b == answers$q);
end

reg f_wrote = 0;
always @(posedge clock) begin
    if (BVALID && BREADY) f_wrote <= 1;
    read_after_write: cover (RVALID && RREADY && f_wrote);
end
