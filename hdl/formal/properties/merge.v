// The merge of two streams of packets: packets stay whole, and neither stream starves the other.

// Names of internal signals.
wire f_on_result = state$q == MergeState$Result;
wire f_picks_ordinary = picks_ordinary$q;
wire f_had_room = had_room$q;
wire f_takes_ordinary = takes_ordinary$q;
wire f_takes_result = takes_result$q;
wire f_midway = midway$q;

// The board powers up in reset.
reg f_up = 0;
reg f_room = 0;
always @(posedge clock) begin
    f_up <= 1;
    f_room <= room && !reset;
    assume (f_up || reset);
end

// Bit 416 of a flit is `last`. Bits 319 to 312 are the destination of `user`.
wire [416:0] f_copied = ordinary | (ordinary_copied ? {97'b0, host_ports, 312'b0} : 417'b0);
wire f_ordinary_moves = ordinary_valid && ordinary_ready;
wire f_result_moves = result_valid && result_ready;
reg f_in_ordinary = 0;
reg f_in_result = 0;
reg f_ordinary_waits = 0;
reg f_result_waits = 0;
reg [416:0] f_ordinary = 0;
reg [416:0] f_result = 0;
always @(posedge clock) begin
    if (f_ordinary_moves) f_in_ordinary <= !ordinary[416];
    if (f_result_moves) f_in_result <= !result[416];
    f_ordinary_waits <= ordinary_valid && !ordinary_ready;
    f_result_waits <= result_valid && !result_ready;
    f_ordinary <= ordinary;
    f_result <= result;
    if (reset) begin
        f_in_ordinary <= 0; f_in_result <= 0; f_ordinary_waits <= 0; f_result_waits <= 0;
    end
end

always @(posedge clock) begin
    // Both senders conform to AXI-Stream.
    assume (!f_ordinary_waits || (ordinary_valid && ordinary == f_ordinary));
    assume (!f_result_waits || (result_valid && result == f_result));

    takes_one_at_a_time: assert (!(f_ordinary_moves && f_result_moves));
    loses_and_invents_nothing: assert (push == (f_ordinary_moves || f_result_moves));
    passes_on_what_it_takes: assert (!f_up || !push || flit == (f_result_moves ? result : f_copied));
    pushes_only_into_room: assert (!push || f_room);
    no_ordinary_beat_in_a_result: assert (!(f_in_result && f_ordinary_moves));
    no_result_beat_in_an_ordinary_packet: assert (!(f_in_ordinary && f_result_moves));

    // Invariants for the induction.
    assert (!f_up || f_picks_ordinary == !f_on_result);
    assert (f_had_room == f_room);
    assert (f_takes_ordinary == (f_room && !f_on_result));
    assert (f_takes_result == (f_room && f_on_result));
    assert (!f_up || (result_stalled == !f_takes_result && lacked_room$q == !f_had_room));
    assert (f_midway == (f_in_ordinary || f_in_result));
    assert (!f_in_ordinary || !f_on_result);
    assert (!f_in_result || f_on_result);
end

reg [1:0] f_step = 0;
always @(posedge clock) begin
    if (f_ordinary_moves && ordinary[416] && f_in_ordinary) f_step <= f_step == 2 ? 3 : 1;
    if (f_result_moves && result[416] && f_in_result && f_step == 1) f_step <= 2;
    result_between_ordinary_packets: cover (f_step == 3);
end
