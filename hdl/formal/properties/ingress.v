// Who takes headers and beats takes only what is there: what the proofs of the others assert.
always @(posedge clock) begin
    assume (!header_pop || header_valid);
    assume (!pop || oldest_valid);
end
