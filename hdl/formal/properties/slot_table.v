// Stub of the slots' memory: it returns any word, but the same one while the same slot is read and nothing is written.

// Names of internal signals.
wire [85:0] f_found = words$read_data;

reg [7:0] f_slot = 0;
reg [7:0] f_slot_before = 0;
reg f_wrote = 1;
reg f_wrote_before = 1;
reg [85:0] f_found_before = 0;
always @(posedge clock) begin
    f_slot <= slot;
    f_slot_before <= f_slot;
    f_wrote <= write;
    f_wrote_before <= f_wrote;
    f_found_before <= f_found;
    assume (f_wrote_before || f_slot != f_slot_before || f_found == f_found_before);
end
