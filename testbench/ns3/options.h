// Command line of the program, and its error handling.

#pragma once

#include "ns3/command-line.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace iswitch {

/// Ends the program; main prints the parts as one line.
template <typename... Parts> [[noreturn]] void Fail(const Parts&... parts) {
    std::ostringstream line;
    (line << ... << parts);
    throw std::runtime_error(line.str());
}

struct Options {
    uint64_t stages = 3;
    uint64_t switches = 16;
    uint64_t slots = 200;
    uint64_t seed = 1;
    uint64_t repeat = 1;
    uint64_t timeout_s = 60;
    double load = 0.6;
    std::string agent;
    std::string rates;
    std::string arrivals;
    std::string trace;
    bool json = false;
    bool quiet = false;
};

/// Parses the whole text as a number of type T, if it is one.
template <typename T> std::optional<T> ParseNumber(const std::string& text) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? std::optional<T>(value) : std::nullopt;
}

/// Adds a numeric option from min to max, inclusive. The ns-3 parser would accept "-5" and "20x" for unsigned
/// numbers.
template <typename T>
void AddNumber(ns3::CommandLine& cmd, const std::string& name, const std::string& help, T& value, T min, T max) {
    const auto parse = [name, &value, min, max](std::string text) {
        const auto parsed = ParseNumber<T>(text);
        if (!parsed || !(*parsed >= min && *parsed <= max)) {
            const char* kind = std::is_integral_v<T> ? "an integer" : "a number";
            Fail("--", name, " '", text, "': expected ", kind, " from ", min, " to ", max);
        }
        value = *parsed;
        return true;
    };
    std::ostringstream initial;
    initial << value;
    cmd.AddValue(name, help, ns3::Callback<bool, std::string>(parse), initial.str());
}

/// Joins an option and a value that follows as the next word, because ns-3 knows only --name=value.
inline std::vector<std::string> JoinValues(int argc, char** argv) {
    std::vector<std::string> words(argv, argv + 1);
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool is_value = word.rfind("--", 0) != 0 && words.size() > 1;
        if (is_value && words.back().find('=') == std::string::npos) {
            words.back() += "=" + word;
        } else {
            words.push_back(word);
        }
    }
    return words;
}

inline Options ParseOptions(int argc, char** argv) {
    constexpr uint64_t last_seed = 4294944442; // of ns-3's generator
    Options options;
    ns3::CommandLine cmd;
    cmd.Usage("Run a slotted multi-stage packet network on ns-3, routed by an agent in each slot.");
    cmd.AddValue("agent", "Unix stream socket of the routing agent; required", options.agent);
    AddNumber<uint64_t>(cmd, "stages", "number of stages, 2 to 16", options.stages, 2, 16);
    AddNumber<uint64_t>(cmd, "switches", "switches per stage, and classes (N), 1 to 128", options.switches, 1, 128);
    AddNumber<uint64_t>(cmd, "slots", "number of slots in a run, which starts empty", options.slots, 1, 10'000'000);
    AddNumber(cmd, "load", "mean of the random rates, in packets per slot and first-stage queue",
              options.load, 0.001, 0.999);
    cmd.AddValue("rates", "CSV file of arrival rates: one line per first-stage switch, one column per class",
                 options.rates);
    cmd.AddValue("arrivals", "CSV file of arrivals, slot,switch,class,count, used instead of Poisson draws",
                 options.arrivals);
    AddNumber<uint64_t>(cmd, "seed", "seed of the rates and of the first run", options.seed, 1, last_seed);
    AddNumber<uint64_t>(cmd, "repeat", "number of runs, with seeds counted from --seed", options.repeat, 1,
                        10'000);
    cmd.AddValue("trace", "CSV file to write: slot,queued_before_arrivals,queued_after_arrivals", options.trace);
    AddNumber<uint64_t>(cmd, "timeout-s", "timeout for an answer from the agent, in seconds", options.timeout_s, 1,
                        86'400);
    cmd.AddValue("json", "print the result as one JSON object", options.json);
    cmd.AddValue("quiet", "do not print progress on stderr", options.quiet);
    cmd.Parse(JoinValues(argc, argv));

    if (cmd.GetNExtraNonOptions() > 0) {
        Fail("argument ", cmd.GetExtraNonOption(0), ": expected an option; --help lists them");
    }
    if (options.agent.empty()) {
        Fail("--agent is missing: expected the path of the agent's socket; --help lists the options");
    }
    if (options.repeat - 1 > last_seed - options.seed) {
        Fail("--repeat ", options.repeat, ": expected the last run's seed to be at most ", last_seed);
    }
    if (!options.trace.empty() && options.repeat > 1) {
        Fail("--repeat ", options.repeat, ": expected 1 together with --trace, whose file holds one run");
    }
    return options;
}

} // namespace iswitch
