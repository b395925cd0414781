// A memory in LUTs returns the last word written.
(* anyconst *) reg [@WIDTH(read_address)@-1:0] f_at;
reg [@WIDTH(write_data)@-1:0] f_word = 0;
always @(posedge clock) begin
    if (write_enable && write_address == f_at) f_word <= write_data;
    reads_what_was_written: assert (read_address != f_at || read_data == f_word);
    assert (words[f_at] == f_word);
end
