// Results as AXI-Stream packets: valid and data are stable, tkeep is contiguous, and tlast agrees with the length.

// Names of internal signals.
wire f_head = state$q == OutputState$Head;
wire f_idle = state$q == OutputState$Idle || state$q == OutputState$Prepare || state$q == OutputState$Head;
wire f_body = state$q == OutputState$Body;
wire f_tail = state$q == OutputState$Tail;
wire f_known_state = f_idle || f_body || f_tail;
wire [8:0] f_floats = held_info$q[72:64];
wire [5:0] f_left = left$q;
wire f_spills = spills$q;
wire f_closes = closes$q;
wire f_heads = heads$q;
wire f_covers = covers$q;
wire [15:0] f_header_len = header$frame_len;
wire [31:0] f_header_keep = header$keep;
wire f_preparing = state$q == OutputState$Prepare;
wire [1:0] f_cycles = waited$q;
wire f_has_info = state$q != OutputState$Idle;
wire f_has_header = f_body || f_tail || state$q == OutputState$Head;

wire [8:0] f_floats_in = info[72:64];
wire f_last = flit[416];
wire [31:0] f_keep = flit[287:256];
wire [15:0] f_len = flit[303:288];

function [31:0] f_ones(input [15:0] len);
    f_ones = len[4:0] == 0 ? 32'hffffffff : ~(32'hffffffff << len[4:0]);
endfunction
function [15:0] f_natural_len(input [8:0] floats);
    f_natural_len = floats < 3 ? 60 : 50 + 4 * floats;
endfunction

// Number of beats of the current frame that have left, and number of bursts taken for it.
reg [5:0] f_beats = 0;
reg [15:0] f_frame_len = 0;
reg [6:0] f_taken = 0;
reg [72:0] f_info = 0;
reg [2:0] f_held = 0;
wire [3:0] f_since = held_info$q == f_info && held_template$q == f_template ? f_held + 1 : 0;
reg f_stalled = 0;
reg f_sum_waits = 0;
reg [@WIDTH(sum)@-1:0] f_sum = 0;
reg [@WIDTH(template)@-1:0] f_template = 0;
reg [@WIDTH(header$head)@+@WIDTH(header$tail)@-1:0] f_head_bytes = 0;
reg f_started = 0;
reg [416:0] f_shown = 0;
wire [5:0] f_expected = (f_len + 31) >> 5;
wire [8:0] f_before_last = f_floats - 1;
wire [5:0] f_bursts_less_1 = f_before_last >> 3;
always @(posedge clock) begin
    if (valid && ready) begin f_beats <= f_last ? 0 : f_beats + 1; f_frame_len <= f_len; end
    if (info_pop) f_taken <= 0;
    if (sum_pop) f_taken <= f_taken + 1;
    f_stalled <= valid && !ready && !reset;
    f_sum_waits <= sum_valid && !sum_pop && !reset;
    f_sum <= sum;
    f_template <= held_template$q;
    f_head_bytes <= {header$head, header$tail};
    f_started <= 1;
    f_shown <= flit;
    f_info <= held_info$q;
    f_held <= f_since == 0 ? 0 : f_held == 7 ? 7 : f_held + 1;
    if (reset) begin f_beats <= 0; f_taken <= 0; end
end

always @(posedge clock) begin
    // The queue of sums follows its rule.
    assume (no_sum == !sum_valid);
    // See merge.v.
    assume (stalled == !ready);
    assume (!f_sum_waits || (sum_valid && sum == f_sum));
    // The properties that result_header.v proves.
    assume (f_since < 5 || {header$head, header$tail} == f_head_bytes);
    assume (f_since < 4 || (f_header_len == f_natural_len(f_floats) && f_header_keep == f_ones(f_header_len)));
    // A segment has 1 to 366 floats.
    assume (!info_valid || (f_floats_in >= 1 && f_floats_in <= 366));

    valid_until_taken: assert (!f_stalled || valid);
    stable_until_taken: assert (!f_stalled || flit == f_shown);
    full_before_the_last: assert (!valid || f_last || f_keep == 32'hffffffff);
    keep_is_a_run_of_ones: assert (!(valid && f_last) || (f_keep != 0 && (f_keep & (f_keep + 1)) == 0));
    keep_is_the_length: assert (!(valid && f_last) || f_keep == f_ones(f_len));
    last_where_the_length_says: assert (!valid || f_last == (f_beats + 1 == f_expected));
    one_length_a_frame: assert (!valid || f_beats == 0 || f_len == f_frame_len);
    legal_length: assert (!valid || (f_len >= 60 && f_len <= 1514));
    takes_what_is_there: assert ((!info_pop || info_valid) && (!sum_pop || sum_valid));

    // Invariants for the induction.
    assert (f_known_state);
    assert (acts$q == (state$q != OutputState$Idle));
    assert (f_heads == f_head && f_covers == (f_head || f_tail));
    assert (f_closes == (f_tail || (f_body && f_left == 0 && !f_spills)));
    assert (!f_has_info || (f_floats >= 1 && f_floats <= 366));
    assert (!f_has_info || f_spills == (f_before_last[2:0] >= 3));
    assert (!f_has_info || f_body || f_tail || (f_left == f_bursts_less_1 && f_taken == 0));
    assert (!f_body || f_left + f_taken == f_bursts_less_1);
    assert (!f_tail || f_taken == f_bursts_less_1 + 1);
    assert (!f_tail || f_spills);
    assert (!f_has_header || f_since >= 4);
    assert (!f_preparing || f_since >= f_cycles);
    assert (!(f_body || f_tail) || f_beats == 1 + f_taken);
    assert (!(f_body || f_tail) || f_frame_len == f_header_len);
    assert (!f_idle || (f_beats == 0 && (f_head || !valid)));
end

reg f_small = 0;
reg f_paused = 0;
always @(posedge clock) begin
    if (valid && ready && f_last && f_len == 60) f_small <= 1;
    if (f_stalled) f_paused <= 1;
    two_results: cover (valid && ready && f_last && f_len == 86 && f_small && f_paused);
end
