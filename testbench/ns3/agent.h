// Connection to the routing agent: sends a request for each slot, and checks the answer.

#pragma once

#include "network.h"

#include <nlohmann/json.hpp>

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace iswitch {

using nlohmann::json;
using nlohmann::ordered_json;

/// Ends the program with an error that names an invalid value in the agent's answer.
[[noreturn]] inline void FailValue(const std::string& where, const json& value, const std::string& expected) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > 60) {
        text = text.substr(0, 60) + "...";
    }
    Fail("agent's answer, ", where, ": ", text, ", expected ", expected);
}

inline const json& CheckArray(const std::string& where, const json& value, size_t size, const std::string& of) {
    if (!value.is_array()) {
        FailValue(where, value, "an array of " + std::to_string(size) + " " + of);
    }
    if (value.size() != size) {
        Fail("agent's answer, ", where, ": array of ", value.size(), ", expected ", size, " ", of);
    }
    return value;
}

/// Reads and checks the links of one switch. `left` is the number of packets of each class that the switch can send.
inline Links ReadLinks(const std::string& where, const json& answer, std::vector<uint64_t> left) {
    Links links;
    for (const json& value : CheckArray(where, answer, left.size(), "links")) {
        const std::string link = where + ", link " + std::to_string(links.size());
        if (value.is_null()) {
            links.emplace_back();
            continue;
        }
        if (!value.is_number_unsigned() || value.get<uint64_t>() >= left.size()) {
            FailValue(link, value, "null or a class from 0 to " + std::to_string(left.size() - 1));
        }
        const auto class_index = value.get<uint64_t>();
        if (left[class_index] == 0) {
            FailValue(link, value, "a class with a packet that no earlier link of this switch takes");
        }
        --left[class_index];
        links.emplace_back(class_index);
    }
    return links;
}

inline Routing ReadRouting(const json& answer, uint64_t slot, const QueueLengths& queues) {
    const std::string where = "slot " + std::to_string(slot);
    if (answer.is_object() && answer.size() == 1 && answer.contains("error")) {
        Fail("agent's answer, ", where, ": error ", answer["error"].dump());
    }
    if (!answer.is_object() || answer.size() != 2 || !answer.contains("slot") || !answer.contains("links")) {
        FailValue(where, answer, R"({"slot":...,"links":...} or {"error":"..."})");
    }
    if (answer["slot"] != slot || !answer["slot"].is_number_unsigned()) {
        FailValue(where + ", field slot", answer["slot"], std::to_string(slot));
    }
    Routing routing;
    for (const json& stage : CheckArray(where + ", links", answer["links"], queues.size() - 1, "stages")) {
        const auto& lengths = queues[routing.size()];
        const std::string in_stage = where + ", stage " + std::to_string(routing.size());
        auto& switches = routing.emplace_back();
        for (const json& links : CheckArray(in_stage, stage, lengths.size(), "switches")) {
            const std::string in_switch = in_stage + ", switch " + std::to_string(switches.size());
            switches.push_back(ReadLinks(in_switch, links, lengths[switches.size()]));
        }
    }
    return routing;
}

/// Connection to the routing agent, which exchanges lines of JSON.
class Agent {
  public:
    Agent(const std::string& path, uint64_t timeout_s)
        : path_(path), timeout_s_(timeout_s), socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof(address.sun_path)) {
            Fail("--agent ", path, ": expected a path of less than ", sizeof(address.sun_path), " bytes");
        }
        path.copy(address.sun_path, path.size());
        const timeval timeout{static_cast<time_t>(timeout_s), 0};
        setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
        setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
        if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
            Fail("--agent ", path, ": ", std::strerror(errno), "; expected an agent listening there");
        }
    }

    ~Agent() { close(socket_); }

    Agent(const Agent&) = delete;
    Agent& operator=(const Agent&) = delete;

    Routing Ask(uint64_t slot, const QueueLengths& queues) {
        SendAll(ordered_json{{"slot", slot}, {"queues", queues}}.dump() + "\n", slot);
        const std::string line = ReadLine(slot);
        const json answer = json::parse(line, nullptr, false);
        if (answer.is_discarded()) {
            FailValue("slot " + std::to_string(slot), line, "one line of JSON in UTF-8");
        }
        return ReadRouting(answer, slot, queues);
    }

  private:
    void SendAll(const std::string& line, uint64_t slot) {
        for (size_t sent = 0; sent < line.size();) {
            const ssize_t count = send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
            if (count < 0) {
                FailSocket(slot);
            }
            sent += static_cast<size_t>(count);
        }
    }

    std::string ReadLine(uint64_t slot) {
        constexpr size_t limit_bytes = 64 << 20; // Many times the longest answer: 15 stages of 128 switches.
        size_t end;
        while ((end = received_.find('\n')) == std::string::npos) {
            char chunk[1 << 16];
            const ssize_t count = recv(socket_, chunk, sizeof(chunk), 0);
            if (count < 0) {
                FailSocket(slot);
            }
            if (count == 0) {
                Fail("--agent ", path_, ": closed the connection in slot ", slot, ", expected an answer");
            }
            received_.append(chunk, static_cast<size_t>(count));
            if (received_.size() > limit_bytes) {
                Fail("--agent ", path_, ": no end of line in ", limit_bytes, " bytes of its answer for slot ", slot);
            }
        }
        const std::string line = received_.substr(0, end);
        received_.erase(0, end + 1);
        return line;
    }

    [[noreturn]] void FailSocket(uint64_t slot) const {
        if (errno == EAGAIN) {
            Fail("--agent ", path_, ": no answer for slot ", slot, " in ", timeout_s_, " s (--timeout-s)");
        }
        Fail("--agent ", path_, ": ", std::strerror(errno), " in slot ", slot);
    }

    std::string path_;
    uint64_t timeout_s_;
    int socket_;
    std::string received_;
};

} // namespace iswitch
