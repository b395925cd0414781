// A queue: its bounds, the order of its words, and the AXI-Stream rule for its output.

// Names of internal signals.
localparam F_DEPTH = 1 << @WIDTH(write_at$q)@;
localparam F_MARGIN = @MARGIN@;
wire [@WIDTH(write_at$q)@-1:0] f_write_at = write_at$q;
wire [@WIDTH(write_at$q)@-1:0] f_read_at = read_at$q;
wire [7:0] f_held = count$q;
wire f_write_enable = ram$write_enable;
wire [@WIDTH(write_at$q)@-1:0] f_write_address = ram$write_address;
wire [@WIDTH(write_at$q)@-1:0] f_read_address = ram$read_address;
wire [@WIDTH(data_in)@-1:0] f_read_data = ram$read_data;

// Number of words in the queue, derived from the ports alone.
reg [7:0] f_count = 0;
reg [7:0] f_before = 0;
reg f_pushed = 0;
reg f_popped = 0;
reg f_was_reset = 0;
// Pushes since `room` was last set, including the preceding cycle, whose count `room` reflects. 31 means that `room`
// has not been set yet.
reg [4:0] f_since_before = 31;
wire [4:0] f_since = room ? f_pushed : f_since_before >= 31 - f_pushed ? 31 : f_since_before + f_pushed;
always @(posedge clock) begin
    f_count <= f_count + push - pop;
    f_before <= f_count;
    f_pushed <= push;
    f_popped <= pop;
    f_was_reset <= f_was_reset || reset;
    f_since_before <= f_since;
    if (reset) begin f_count <= 0; f_before <= 0; f_pushed <= 0; f_popped <= 0; f_since_before <= 31; end
end

// Any single word of the memory, with the property that lut_ram.v proves.
(* anyconst *) reg [@WIDTH(write_at$q)@-1:0] f_at;
reg [@WIDTH(data_in)@-1:0] f_word = 0;
always @(posedge clock) begin
    if (f_write_enable && f_write_address == f_at) f_word <= data_in;
    assume (f_read_address != f_at || f_read_data == f_word);
end

// Any single word in transit, and the number of words ahead of it.
(* anyseq *) reg f_choose;
reg f_tracks = 0;
reg [7:0] f_ahead = 0;
reg [@WIDTH(data_in)@-1:0] f_tracked = 0;
always @(posedge clock) begin
    if (f_tracks && pop) begin f_ahead <= f_ahead - 1; f_tracks <= f_ahead != 0; end
    if (!f_tracks && push && f_choose && f_write_address == f_at) begin
        f_tracks <= 1;
        f_ahead <= f_count - pop;
        f_tracked <= data_in;
    end
    if (reset) f_tracks <= 0;
end

reg f_stalled = 0;
reg [@WIDTH(data_in)@-1:0] f_shown = 0;
always @(posedge clock) begin
    f_stalled <= valid && !pop && !reset;
    f_shown <= data_out;
end

always @(posedge clock) begin
    // The rules for the sender and the receiver. The proof of a single queue assumes them for any sender and receiver;
    // the proofs of the datapath assert them for the real ones.
    sender_pushes_within_margin: @RULE@ (reset || !push || f_since <= F_MARGIN);
    receiver_pops_what_is_there: @RULE@ (reset || !pop || valid);

    never_overflows: assert (f_count <= F_DEPTH);
    shows_what_it_has: assert (valid == (f_count != 0));
    empty_is_the_complement: assert (!f_was_reset || empty == !valid);
    room_is_for_a_margin: assert (!room || f_count <= F_DEPTH - F_MARGIN);
    order: assert (!(f_tracks && f_ahead == 0) || !valid || data_out == f_tracked);
    valid_until_taken: assert (!f_stalled || valid);
    stable_until_taken: assert (!f_stalled || f_read_at != f_at || data_out == f_shown);

    // Invariants for the induction.
    assert (f_held == f_count);
    assert (f_before + f_pushed == f_count + f_popped);
    assert (f_write_at == ((f_read_at + f_count) & (F_DEPTH - 1)));
    assert (!room || f_before < limit);
    assert (f_since == 31 || f_count < limit + f_since);
    assert (!f_tracks || (f_ahead < f_count && f_at == ((f_read_at + f_ahead) & (F_DEPTH - 1)) && f_word == f_tracked));
    assert (!f_stalled || f_read_at != f_at || f_shown == f_word);
end

reg f_was_full = 0;
always @(posedge clock) begin
    if (f_count > F_DEPTH - F_MARGIN) f_was_full <= 1;
    full_but_for_the_margin: cover (f_count > F_DEPTH - F_MARGIN && !room);
    full_then_empty: cover (f_was_full && f_count == 0);
end
