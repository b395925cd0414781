// A memory in block RAM returns, one cycle later, the last word written before the read.
(* anyconst *) reg [@WIDTH(read_address)@-1:0] f_at;
reg [@WIDTH(write_data)@-1:0] f_word = 0;
reg f_asked = 0;
reg [@WIDTH(write_data)@-1:0] f_answer = 0;
always @(posedge clock) begin
    if (write_enable && write_address == f_at) f_word <= write_data;
    f_asked <= read_address == f_at;
    f_answer <= f_word;
    reads_what_was_written: assert (!f_asked || read_data == f_answer);
    assert (words[f_at] == f_word);
end
