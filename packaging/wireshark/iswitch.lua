-- Wireshark dissector for iSwitch packets: UDP port 7711 by default, with the ToS of control or data packets.
--
-- Copy this file into the directory that Help > About Wireshark > Folders calls "Personal Lua Plugins", or start with
-- `wireshark -X lua_script:iswitch.lua` or `tshark -X lua_script:iswitch.lua`. protocol/SPEC.md specifies the format.

local iswitch = Proto("iswitch", "iSwitch gradient aggregation")

local HEADER_LEN, JOIN_LEN, ACK_LEN, DIGEST_LEN, RANGE_LEN = 12, 76, 60, 28, 12
local GROUP_LEN, NONCE_LEN, NAME_LEN, ABSENT_LEN = 20, 20, 18, 20
local TRAILER_LEN, TAG_LEN, SEG_LEN = 24, 8, 8
local VERSION = 1
-- Maximum length of a data packet, at an MTU of 9000 bytes. A captured packet is longer if it is a kernel super-frame
-- (GSO or GRO).
local MAX_PAYLOAD_LEN = 8968
local TOS_MASK = 0xfc

local ACTIONS = {
    [1] = "Join", [2] = "Leave", [3] = "Reset", [4] = "SetH", [5] = "FBcast",
    [6] = "Help", [7] = "Halt", [8] = "Ack", [9] = "Confirm", [10] = "Digest",
    [11] = "Group", [12] = "Probe", [13] = "Heard", [14] = "Name",
    [15] = "Waiting", [16] = "Absent",
}
local MODES = { [0] = "Synchronous", [1] = "Asynchronous" }
local KINDS = { [0] = "Worker", [1] = "Switch" }
-- Element types of data packets: names by code, and lengths in bytes.
local F32, BF16, F16 = 0, 1, 2
local ELEMENTS = { [F32] = "f32", [BF16] = "bf16", [F16] = "f16" }
local ELEMENT_LEN = { [F32] = 4, [BF16] = 2, [F16] = 2 }
local STANDINGS = { [0] = "Fresh", [1] = "Resumed", [2] = "Supplies", [3] = "Awaits" }
local STATUSES = {
    [0] = "success", [1] = "malformed", [2] = "protocol version", [3] = "unknown member", [4] = "foreign job",
    [5] = "gradient length", [6] = "segment size", [7] = "mode", [8] = "number of workers", [9] = "vector layout",
    [10] = "job full", [11] = "no capacity", [12] = "stale round", [13] = "segment range out of range",
    [14] = "NaN or infinity in a contribution", [15] = "job halted", [16] = "threshold H",
    [17] = "length of a data packet", [18] = "contribution count of a worker", [19] = "segment index out of range",
    [20] = "unknown job", [21] = "levels of switches", [22] = "not authentic", [23] = "challenge",
    [24] = "tags of data packets", [25] = "digest of the weights", [26] = "element types",
}
local LIMITS = {
    [1] = "jobs", [2] = "uplink_jobs", [3] = "keyless_jobs", [4] = "jobs_per_source", [5] = "memory_bytes",
    [6] = "job_memory_bytes", [7] = "keyless_memory_bytes", [8] = "slots", [9] = "draining", [10] = "members",
}

-- Fields, by their names after the prefix "iswitch.".
local f = {}

local function field(kind, name, text, ...)
    f[name] = ProtoField[kind]("iswitch." .. name, text, ...)
end

field("uint8", "action", "Action", base.DEC, ACTIONS)
field("uint8", "version", "Control protocol version", base.DEC)
field("uint16", "flags", "Flags", base.HEX)
field("bool", "flags.authenticated", "Authenticated", 16, nil, 0x0001)
field("uint32", "job", "Job", base.DEC)
field("uint32", "request", "Request", base.HEX)
field("framenum", "response_in", "Answered in", base.NONE, frametype.RESPONSE)
field("framenum", "response_to", "Answer to", base.NONE, frametype.REQUEST)
field("relative_time", "response_time", "Time since the request")

field("uint32", "join.gradient_len", "Floats in the vector", base.DEC)
field("uint16", "join.segment_floats", "Floats per segment", base.DEC)
field("uint16", "join.workers", "Workers declared for the job", base.DEC)
field("uint8", "join.mode", "Mode", base.DEC, MODES)
field("uint8", "join.kind", "Member kind", base.DEC, KINDS)
field("uint16", "join.weight", "Workers represented by the member", base.DEC)
field("uint32", "join.instance", "Instance", base.HEX)
field("uint16", "join.rank", "Rank", base.DEC)
field("uint8", "join.flags", "Join flags", base.HEX)
field("bool", "join.query", "Query only", 8, nil, 0x01)
field("bool", "join.resumes", "Resumes an earlier membership", 8, nil, 0x02)
field("bool", "join.tagged", "Data packets end with a tag", 8, nil, 0x04)
field("bool", "join.roams", "Can move to another parent", 8, nil, 0x08)
field("bool", "join.updates", "Only updates the weight", 8, nil, 0x10)
field("bool", "join.groups", "Can receive results through a group", 8, nil, 0x40)
field("bool", "join.part", "The vector is one part of a longer one", 8, nil, 0x80)
field("bool", "join.resume.fresh", "Fresh: history known, sums not held", 8, nil, 0x20)
field("uint8", "join.height", "Levels of switches", base.DEC)
field("uint32", "join.resume.round", "Next round of the member", base.DEC)
field("uint16", "join.resume.members", "Members that the job had", base.DEC)
field("uint16", "join.resume.threshold", "Threshold H set by SetH", base.DEC)
field("uint64", "join.resume.history", "History of the member", base.HEX)
field("uint64", "join.resume.previous", "History before the last sum", base.HEX)
field("uint64", "join.resume.behind", "History of members that lack the last sum", base.HEX)
field("uint16", "join.resume.weight", "Workers that the job had", base.DEC)
field("uint8", "join.contributions", "Element type of contributions", base.DEC, ELEMENTS)
field("uint8", "join.results", "Element type of results", base.DEC, ELEMENTS)
field("uint64", "join.nonce", "Nonce", base.HEX)

field("uint32", "reset.round", "Round to continue from", base.DEC)
field("uint64", "reset.boot", "Epoch of the job", base.HEX)
field("uint16", "seth.threshold", "Threshold H", base.DEC)

field("uint32", "range.round", "Round", base.DEC)
field("uint32", "range.first", "First segment", base.DEC)
field("uint32", "range.count", "Segments", base.DEC)
field("bytes", "range.bitmap", "Bitmap")
field("uint32", "range.segment", "Segment", base.DEC)

field("uint32", "digest.round", "Last round applied to the weights", base.DEC)
field("uint64", "digest.digest", "Digest of the weights", base.HEX)

field("ipv4", "group.address", "Multicast address")
field("uint16", "group.port", "UDP port", base.DEC)
field("uint64", "probe.nonce", "Nonce", base.HEX)
field("uint64", "heard.nonce", "Nonce of the Probe", base.HEX)

field("uint16", "name.rank", "Rank (65535: unknown)", base.DEC)
field("string", "name.job", "Name of the job")
field("string", "name.owner", "Owner of the job")
field("string", "name.host", "Host name of the sender")
field("uint32", "absent.round", "Oldest round that is waiting for members", base.DEC)
field("uint16", "absent.count", "Number of members that the round is waiting for", base.DEC)
field("uint16", "absent.rank", "Rank of a member (65535: unknown)", base.DEC)
field("string", "absent.host", "Host name of a member")

field("uint8", "ack.action", "Acknowledged action", base.DEC, ACTIONS)
field("uint8", "ack.status", "Status", base.DEC, STATUSES)
field("uint16", "ack.member", "Member", base.DEC)
field("uint16", "ack.members", "Members of the job", base.DEC)
field("uint16", "ack.threshold", "Threshold H", base.DEC)
field("uint32", "ack.round", "Round", base.DEC)
field("uint16", "ack.window", "Window (segments)", base.DEC)
field("uint8", "ack.standing", "Standing", base.DEC, STANDINGS)
field("uint8", "ack.flags", "Ack flags", base.HEX)
field("bool", "ack.formed", "The job is complete", 8, nil, 0x01)
field("bool", "ack.orphaned", "The switch has lost its parent", 8, nil, 0x02)
field("bool", "ack.pinned", "The threshold was set by SetH", 8, nil, 0x04)
field("uint8", "ack.other_parts", "Parts, less one", base.DEC, nil, 0xf0)
field("uint64", "ack.boot", "Epoch of the job, or boot id of the switch", base.HEX)
field("uint32", "ack.lease_ms", "Lease (ms)", base.DEC)
field("uint32", "ack.expected", "Expected", base.DEC)
field("uint64", "ack.history", "History, nonce of a Challenge, or limit", base.HEX)
field("uint8", "ack.limit", "Limit of the switch", base.DEC, LIMITS)
field("uint64", "ack.limit_value", "Value of the limit", base.DEC)
field("ipv4", "ack.peer.address", "Address of a peer")
field("uint16", "ack.peer.port", "UDP port of a peer", base.DEC)
field("uint16", "ack.weight", "Workers of the job", base.DEC)

field("uint32", "padding_len", "Padding (bytes)", base.DEC)
field("uint64", "auth.counter", "Counter", base.DEC)
field("bytes", "auth.tag", "Tag")

field("uint32", "seg.index", "Segment", base.DEC)
field("uint32", "seg.round", "Round", base.DEC)
field("uint16", "seg.count", "Count field", base.DEC)
field("uint16", "seg.contributions", "Contributions", base.DEC)
field("uint8", "data.element", "Element type", base.DEC, ELEMENTS)
field("bytes", "data.floats", "Floats")
field("float", "data.float", "Float")
field("bytes", "data.tag", "Tag")

for _, one in pairs(f) do
    table.insert(iswitch.fields, one)
end

local malformed = ProtoExpert.new("iswitch.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local refused = ProtoExpert.new("iswitch.refused", "Refused", expert.group.RESPONSE_CODE, expert.severity.WARN)
local unasked = ProtoExpert.new(
    "iswitch.joined",
    "Several packets in one: the Join that declares their length was not captured",
    expert.group.UNDECODED,
    expert.severity.NOTE
)
local untyped = ProtoExpert.new(
    "iswitch.untyped",
    "Not a whole number of f32: the Join that declares the element type was not captured",
    expert.group.UNDECODED,
    expert.severity.NOTE
)
iswitch.experts = { malformed, refused, unasked, untyped }

iswitch.prefs.port = Pref.uint("UDP port of the switch", 7711)
iswitch.prefs.control_tos = Pref.uint("ToS of control packets", 0x0c)
iswitch.prefs.data_tos = Pref.uint("ToS of data packets", 0x1c)
iswitch.prefs.tagged = Pref.enum(
    "Data packets end with a tag",
    0,
    "By default, the captured Join from the member decides",
    { { 1, "As declared in the Join", 0 }, { 2, "Yes", 1 }, { 3, "No", 2 } },
    false
)
iswitch.prefs.elements = Pref.enum(
    "Element type of data packets",
    0,
    "By default, the captured Join from the member decides; without one, the type is f32",
    {
        { 1, "As declared in the Join", 0 }, { 2, "F32", 1 }, { 3, "Bf16", 2 }, { 4, "F16", 3 },
        { 5, "Bf16 with F32 results", 4 }, { 6, "F16 with F32 results", 5 },
    },
    false
)
-- Element types, by the value of the preference.
local DECLARED = {
    { contributions = F32, results = F32 }, { contributions = BF16, results = BF16 },
    { contributions = F16, results = F16 }, { contributions = BF16, results = F32 },
    { contributions = F16, results = F32 },
}

local tos_of = Field.new("ip.dsfield")

-- Declarations in the Join of each member, by the member's address and port: whether it is a switch, whether data is
-- tagged, the floats per segment, and the element types (nil if their codes are unknown).
local members = {}
-- Frames and times of requests, and frames of their answers, by member, job and request.
local exchanges = {}

function iswitch.init()
    members, exchanges = {}, {}
end

-- Returns the address and port of the member, that is, of the endpoint that is not the switch.
local function member_of(pinfo)
    if pinfo.src_port == iswitch.prefs.port then
        return tostring(pinfo.dst) .. ":" .. pinfo.dst_port
    end
    return tostring(pinfo.src) .. ":" .. pinfo.src_port
end

local function add(tree, name, buffer, at, len)
    return tree:add_le(f[name], buffer(at, len))
end

-- Adds a list of consecutive fields, each { name, bytes }, and returns the offset after them.
local function add_all(tree, buffer, at, fields)
    for _, one in ipairs(fields) do
        add(tree, one[1], buffer, at, one[2])
        at = at + one[2]
    end
    return at
end

local function is_zero(buffer, at, len)
    for i = at, at + len - 1 do
        if buffer(i, 1):uint() ~= 0 then
            return false
        end
    end
    return true
end

local function add_padding(tree, buffer, at)
    local len = buffer:len() - at
    tree:add(f["padding_len"], len):set_generated()
    if len > 0 and not is_zero(buffer, at, len) then
        tree:add_proto_expert_info(malformed, "Padding is not zero")
    end
end

local function add_range(tree, buffer, at)
    add_all(tree, buffer, at, { { "range.round", 4 }, { "range.first", 4 }, { "range.count", 4 } })
    return buffer(at + 4, 4):le_uint(), buffer(at + 8, 4):le_uint()
end

-- Adds a range and a bitmap of its segments, and returns the number of bits that are set.
local function add_set(tree, buffer, at)
    if buffer:len() < at + RANGE_LEN then
        tree:add_proto_expert_info(malformed, "Too short for a range of segments")
        return 0
    end
    local first, count = add_range(tree, buffer, at)
    local len = math.floor((count + 7) / 8)
    if buffer:len() < at + RANGE_LEN + len then
        tree:add_proto_expert_info(malformed, "The bitmap is shorter than one bit per segment")
        return 0
    end
    if len == 0 then
        return 0
    end
    local bits = buffer(at + RANGE_LEN, len)
    local subtree, found = tree:add(f["range.bitmap"], bits), 0
    for i = 0, count - 1 do
        local byte = bits(math.floor(i / 8), 1)
        if bit.band(bit.rshift(byte:uint(), i % 8), 1) == 1 then
            subtree:add(f["range.segment"], byte, first + i)
            found = found + 1
        end
    end
    return found
end

-- Dissectors of the Values, by action. Each takes a packet without its trailer and returns text for the Info column.
local dissect = {}

function dissect.Join(tree, buffer, pinfo)
    add_all(tree, buffer, 12, {
        { "join.gradient_len", 4 }, { "join.segment_floats", 2 }, { "join.workers", 2 }, { "join.mode", 1 },
        { "join.kind", 1 }, { "join.weight", 2 }, { "join.instance", 4 }, { "join.rank", 2 },
    })
    local flags = add(tree, "join.flags", buffer, 30, 1)
    for _, name in ipairs({ "query", "resumes", "tagged", "roams", "updates", "groups", "part" }) do
        add(flags, "join." .. name, buffer, 30, 1)
    end
    add(tree, "join.height", buffer, 31, 1)
    local bits = buffer(30, 1):uint()
    if bit.band(bits, 0x02) ~= 0 then
        local subtree = tree:add(iswitch, buffer(32, 36), "State to resume from")
        add_all(subtree, buffer, 32, {
            { "join.resume.round", 4 }, { "join.resume.members", 2 }, { "join.resume.threshold", 2 },
            { "join.resume.history", 8 }, { "join.resume.previous", 8 }, { "join.resume.behind", 8 },
            { "join.resume.weight", 2 },
        })
        add(subtree, "join.resume.fresh", buffer, 30, 1)
    end
    add_all(tree, buffer, 66, { { "join.contributions", 1 }, { "join.results", 1 }, { "join.nonce", 8 } })
    add_padding(tree, buffer, JOIN_LEN)
    local elements = { contributions = buffer(66, 1):uint(), results = buffer(67, 1):uint() }
    local contributions, results = ELEMENTS[elements.contributions], ELEMENTS[elements.results]
    members[member_of(pinfo)] = {
        is_switch = KINDS[buffer(21, 1):uint()] == "Switch",
        is_tagged = bit.band(bits, 0x04) ~= 0,
        segment_floats = buffer(16, 2):le_uint(),
        elements = contributions and results and elements,
    }
    return string.format(
        "%s of %d floats (contributions %s, results %s), %d workers", MODES[buffer(20, 1):uint()] or "?",
        buffer(12, 4):le_uint(), contributions or "?", results or "?", buffer(18, 2):le_uint()
    )
end

function dissect.Reset(tree, buffer)
    local boot = buffer(16, 8)
    add(tree, "reset.boot", buffer, 16, 8)
    return boot:le_uint64() == UInt64(0) and "any epoch" or "epoch " .. tostring(boot:le_uint64():tohex())
end

function dissect.SetH(tree, buffer)
    add(tree, "seth.threshold", buffer, 12, 2)
    return "H = " .. buffer(12, 2):le_uint()
end

function dissect.FBcast(tree, buffer)
    local first, count = add_range(tree, buffer, 12)
    return string.format("round %d, %d segments from %d", buffer(12, 4):le_uint(), count, first)
end

function dissect.Help(tree, buffer)
    local found = add_set(tree, buffer, HEADER_LEN)
    return found == 0 and "heartbeat" or string.format("round %d, %d segments", buffer(12, 4):le_uint(), found)
end

function dissect.Confirm(tree, buffer)
    local found = add_set(tree, buffer, HEADER_LEN)
    return string.format("vector %d, %d segments", buffer(12, 4):le_uint(), found)
end

function dissect.Digest(tree, buffer)
    add(tree, "digest.round", buffer, 12, 4)
    add(tree, "digest.digest", buffer, 20, 8)
    return "round " .. buffer(12, 4):le_uint()
end

function dissect.Group(tree, buffer)
    -- The address is in network byte order.
    tree:add(f["group.address"], buffer(12, 4))
    add(tree, "group.port", buffer, 16, 2)
    return string.format("%s:%d", tostring(buffer(12, 4):ipv4()), buffer(16, 2):le_uint())
end

function dissect.Probe(tree, buffer)
    add(tree, "probe.nonce", buffer, 12, 8)
    return "nonce " .. tostring(buffer(12, 8):le_uint64():tohex())
end

function dissect.Heard(tree, buffer)
    local nonce = buffer(12, 8):le_uint64()
    add(tree, "heard.nonce", buffer, 12, 8)
    return nonce == UInt64(0) and "asks for a Probe" or "nonce " .. tostring(nonce:tohex())
end

function dissect.Name(tree, buffer)
    add(tree, "name.rank", buffer, 12, 2)
    local at, shown = NAME_LEN, {}
    for number, name in ipairs({ "job", "owner", "host" }) do
        local len = buffer(13 + number, 1):uint()
        if at + len > buffer:len() then
            tree:add_proto_expert_info(malformed, "Shorter than its texts")
            return "truncated"
        end
        if len > 0 then
            local text = buffer(at, len):string(ENC_UTF_8)
            tree:add(f["name." .. name], buffer(at, len), text)
            shown[#shown + 1] = name .. " " .. text
        end
        at = at + len
    end
    add_padding(tree, buffer, at)
    local rank = buffer(12, 2):le_uint()
    if rank ~= 65535 then
        shown[#shown + 1] = "rank " .. rank
    end
    return table.concat(shown, ", ")
end

function dissect.Waiting(tree, buffer)
    add_padding(tree, buffer, HEADER_LEN)
    return ""
end

function dissect.Absent(tree, buffer)
    add_all(tree, buffer, 12, { { "absent.round", 4 }, { "absent.count", 2 } })
    local at, last, shown = ABSENT_LEN, ABSENT_LEN + buffer(18, 2):le_uint(), {}
    while at + 3 <= last do
        local len = buffer:len() < at + 3 and buffer:len() or buffer(at + 2, 1):uint()
        if at + 3 + len > buffer:len() then
            tree:add_proto_expert_info(malformed, "Shorter than its list")
            return "truncated"
        end
        local rank = buffer(at, 2):le_uint()
        local text = rank == 65535 and "?" or "rank " .. rank
        add(tree, "absent.rank", buffer, at, 2)
        if len > 0 then
            local host = buffer(at + 3, len):string(ENC_UTF_8)
            tree:add(f["absent.host"], buffer(at + 3, len), host)
            text = text .. " on " .. host
        end
        shown[#shown + 1] = text
        at = at + 3 + len
    end
    add_padding(tree, buffer, at)
    local count = buffer(16, 2):le_uint()
    return string.format("round %d is waiting for %d: %s", buffer(12, 4):le_uint(), count, table.concat(shown, ", "))
end

function dissect.Ack(tree, buffer)
    add_all(tree, buffer, 12, {
        { "ack.action", 1 }, { "ack.status", 1 }, { "ack.member", 2 }, { "ack.members", 2 },
        { "ack.threshold", 2 }, { "ack.round", 4 }, { "ack.window", 2 }, { "ack.standing", 1 },
    })
    local flags = add(tree, "ack.flags", buffer, 27, 1)
    for _, name in ipairs({ "formed", "orphaned", "pinned", "other_parts" }) do
        add(flags, "ack." .. name, buffer, 27, 1)
    end
    add_all(tree, buffer, 28, {
        { "ack.boot", 8 }, { "ack.lease_ms", 4 }, { "ack.expected", 4 }, { "ack.history", 8 },
    })
    if buffer(56, 2):le_uint() ~= 0 then
        -- The address is the only field in network byte order.
        tree:add(f["ack.peer.address"], buffer(52, 4))
        add(tree, "ack.peer.port", buffer, 56, 2)
    end
    add(tree, "ack.weight", buffer, 58, 2)
    local action, status = ACTIONS[buffer(12, 1):uint()] or "?", buffer(13, 1):uint()
    if (status == 10 or status == 11) and buffer(51, 1):uint() ~= 0 then
        add(tree, "ack.limit", buffer, 51, 1)
        tree:add(f["ack.limit_value"], buffer(44, 7), buffer(44, 7):le_uint64())
    end
    if status ~= 0 then
        tree:add_proto_expert_info(refused, "Refused: " .. (STATUSES[status] or "unknown status"))
    end
    if status == 0 and (action == "Help" or action == "Confirm") then
        add_set(tree:add(iswitch, buffer(ACK_LEN), "Segments that the switch has not received"), buffer, ACK_LEN)
    else
        add_padding(tree, buffer, ACK_LEN)
    end
    return string.format("%s, %s", action, STATUSES[status] or "?")
end

-- Minimum lengths of control packets, without padding and bitmaps.
local LENGTHS = {
    Join = JOIN_LEN, Leave = HEADER_LEN, Reset = HEADER_LEN + 12, SetH = HEADER_LEN + 2,
    FBcast = HEADER_LEN + RANGE_LEN, Help = HEADER_LEN + RANGE_LEN, Halt = HEADER_LEN, Ack = ACK_LEN,
    Confirm = HEADER_LEN + RANGE_LEN, Digest = DIGEST_LEN,
    Group = GROUP_LEN, Probe = NONCE_LEN, Heard = NONCE_LEN, Name = NAME_LEN,
    Waiting = HEADER_LEN, Absent = ABSENT_LEN,
}

-- Links a request to its answer, and an answer to its request.
local function add_exchange(tree, buffer, pinfo, is_ack)
    local request = buffer(8, 4):le_uint()
    if request == 0 then
        return
    end
    local key = member_of(pinfo) .. "/" .. buffer(4, 4):le_uint() .. "/" .. request
    local exchange = exchanges[key] or {}
    exchanges[key] = exchange
    if not is_ack then
        exchange.asked = exchange.asked or { frame = pinfo.number, time = pinfo.abs_ts }
    else
        exchange.answered = exchange.answered or pinfo.number
    end
    if not is_ack and exchange.answered then
        tree:add(f["response_in"], exchange.answered):set_generated()
    elseif is_ack and exchange.asked then
        tree:add(f["response_to"], exchange.asked.frame):set_generated()
        local seconds = pinfo.abs_ts - exchange.asked.time
        local whole = math.floor(seconds)
        tree:add(f["response_time"], NSTime.new(whole, math.floor((seconds - whole) * 1e9))):set_generated()
    end
end

local function dissect_control(buffer, pinfo, tree)
    if buffer:len() < HEADER_LEN then
        tree:add_proto_expert_info(malformed, "Shorter than a control packet header")
        return "Malformed control packet"
    end
    add(tree, "action", buffer, 0, 1)
    add(tree, "version", buffer, 1, 1)
    local flags = add(tree, "flags", buffer, 2, 2)
    add(flags, "flags.authenticated", buffer, 2, 2)
    add(tree, "job", buffer, 4, 4)
    add(tree, "request", buffer, 8, 4)
    local name, version = ACTIONS[buffer(0, 1):uint()], buffer(1, 1):uint()
    if version ~= VERSION or not name then
        tree:add_proto_expert_info(malformed, version ~= VERSION and "Unsupported version" or "Unknown action")
        return name or "Unknown action"
    end
    local len = buffer:len()
    local is_authenticated = bit.band(buffer(2, 2):le_uint(), 1) ~= 0
    local content_len = is_authenticated and len - TRAILER_LEN or len
    if content_len < LENGTHS[name] then
        tree:add_proto_expert_info(malformed, "Too short for this action")
        return name .. " (malformed)"
    end
    local text = ""
    if dissect[name] then
        text = ": " .. dissect[name](tree, buffer(0, content_len):tvb(), pinfo)
    elseif not is_zero(buffer, LENGTHS[name], content_len - LENGTHS[name]) then
        tree:add_proto_expert_info(malformed, "Padding is not zero")
    end
    if is_authenticated then
        local trailer = tree:add(iswitch, buffer(content_len, TRAILER_LEN), "Authentication trailer (not verified)")
        add(trailer, "auth.counter", buffer, content_len, 8)
        trailer:add(f["auth.tag"], buffer(content_len + 8, TRAILER_LEN - 8))
    end
    add_exchange(tree, buffer, pinfo, name == "Ack")
    return name .. text
end

-- Decodes the count field: 0 (from a sender that sets only the index) means 1, and 65535 means no contributions.
local function contributions_of(count)
    if count == 0 then
        return 1
    end
    return count == 65535 and 0 or count
end

-- Converts a 16-bit floating-point number, given its numbers of exponent and fraction bits, to a Lua number.
local function widen(bits, exponent_bits, fraction_bits)
    local fraction = bits % 2 ^ fraction_bits
    local exponent = math.floor(bits / 2 ^ fraction_bits) % 2 ^ exponent_bits
    local lowest = 2 - 2 ^ (exponent_bits - 1) - fraction_bits
    local magnitude
    if exponent == 2 ^ exponent_bits - 1 then
        magnitude = fraction == 0 and math.huge or 0 / 0
    elseif exponent == 0 then
        magnitude = fraction * 2 ^ lowest
    else
        magnitude = (2 ^ fraction_bits + fraction) * 2 ^ (lowest + exponent - 1)
    end
    return bits >= 0x8000 and -magnitude or magnitude
end

local function add_element(tree, range, element)
    if element == F32 then
        tree:add_le(f["data.float"], range)
    elseif element == BF16 then
        tree:add(f["data.float"], range, widen(range:le_uint(), 8, 7))
    else
        tree:add(f["data.float"], range, widen(range:le_uint(), 5, 10))
    end
end

-- Adds the elements of a data packet, and returns text for the Info column.
local function add_elements(tree, range, element)
    local len = ELEMENT_LEN[element]
    local count = math.floor(range:len() / len)
    tree:add(f["data.element"], range, element):set_generated()
    local subtree = tree:add(f["data.floats"], range)
    local text = string.format("%d %s elements", count, ELEMENTS[element])
    subtree:set_text(text)
    for i = 0, count - 1 do
        add_element(subtree, range(i * len, len), element)
    end
    return text
end

-- Dissects a data packet. `format` states whether there is a tag, the element type, and whether that type is declared.
local function dissect_segment(buffer, tree, format)
    local len = buffer:len()
    local floats_len = len - SEG_LEN - (format.is_tagged and TAG_LEN or 0)
    local is_whole = floats_len > 0 and floats_len % ELEMENT_LEN[format.element] == 0
    -- Without a declaration, the elements may have 16 bits.
    local is_untyped = not is_whole and not format.is_declared and floats_len > 0 and floats_len % 2 == 0
    if not is_whole and not is_untyped then
        tree:add_proto_expert_info(malformed, "Not a Seg followed by a whole number of elements")
        return "Malformed data packet"
    end
    add_all(tree, buffer, 0, { { "seg.index", 3 }, { "seg.round", 3 }, { "seg.count", 2 } })
    local contributions = contributions_of(buffer(6, 2):le_uint())
    tree:add(f["seg.contributions"], buffer(6, 2), contributions):set_generated()
    local range, text = buffer(SEG_LEN, floats_len), nil
    if is_whole then
        text = add_elements(tree, range, format.element)
    else
        text = string.format("%d bytes of elements", floats_len)
        tree:add(f["data.floats"], range):set_text(text)
        tree:add_proto_expert_info(untyped)
    end
    if format.is_tagged then
        tree:add(f["data.tag"], buffer(len - TAG_LEN, TAG_LEN))
    end
    return string.format(
        "Data: segment %d, round %d, %d contributions, %s", buffer(0, 3):le_uint(), buffer(3, 3):le_uint(),
        contributions, text
    )
end

-- Returns the declared element type of a data packet, or nil if there is no declaration.
local function element_of(buffer, pinfo, member)
    local declared = DECLARED[iswitch.prefs.elements] or member and member.elements
    if not declared then
        return nil
    elseif pinfo.src_port == iswitch.prefs.port then
        return declared.results
    elseif member and member.is_switch then
        -- Partial sums are f32 in all jobs.
        return F32
    end
    -- A contribution of a worker holds one gradient. If it holds more, it is a sum that the worker supplies again.
    local is_sum = buffer:len() >= SEG_LEN and contributions_of(buffer(6, 2):le_uint()) ~= 1
    return is_sum and declared.results or declared.contributions
end

-- A capture on the sending or receiving machine may contain super-frames: many data packets in one.
local function dissect_data(buffer, pinfo, tree)
    local member = members[member_of(pinfo)]
    local declared = element_of(buffer, pinfo, member)
    local format = {
        is_tagged = iswitch.prefs.tagged == 1 or iswitch.prefs.tagged == 0 and member ~= nil and member.is_tagged,
        element = declared or F32,
        is_declared = declared ~= nil,
    }
    local len, each = buffer:len(), nil
    if member and member.segment_floats > 0 then
        each = SEG_LEN + ELEMENT_LEN[format.element] * member.segment_floats + (format.is_tagged and TAG_LEN or 0)
    end
    if not each and len > MAX_PAYLOAD_LEN + TAG_LEN then
        tree:add_proto_expert_info(unasked)
        return "Several data packets"
    end
    if not each or len <= each then
        return dissect_segment(buffer, tree, format)
    end
    local count, at, first = 0, 0, nil
    while at < len do
        local part = buffer(at, math.min(each, len - at))
        count = count + 1
        local text = dissect_segment(part:tvb(), tree:add(iswitch, part, "Data packet " .. count), format)
        first = first or text
        at = at + each
    end
    return string.format("%s (and %d more)", first, count - 1)
end

function iswitch.dissector(buffer, pinfo, root)
    local tos = tos_of()
    local class = tos and bit.band(tos.value, TOS_MASK)
    local is_control = class == iswitch.prefs.control_tos
    if not is_control and class ~= iswitch.prefs.data_tos then
        -- Another protocol on the same UDP port.
        return 0
    end
    pinfo.cols.protocol = "iSwitch"
    local tree = root:add(iswitch, buffer())
    local text = (is_control and dissect_control or dissect_data)(buffer, pinfo, tree)
    tree:append_text(", " .. text)
    pinfo.cols.info = text
    return buffer:len()
end

local ports = DissectorTable.get("udp.port")
local registered

local function register()
    if registered ~= iswitch.prefs.port then
        if registered then
            ports:remove(registered, iswitch)
        end
        registered = iswitch.prefs.port
        ports:add(registered, iswitch)
    end
end

iswitch.prefs_changed = register
register()
