// Arrival rates and arrivals: read from CSV files, or drawn at random.

#pragma once

#include "options.h"

#include "ns3/random-variable-stream.h"
#include "ns3/rng-seed-manager.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>

namespace iswitch {

struct CsvLine {
    std::string where; // option, file and line number, for messages
    std::vector<std::string> fields;
};

inline std::string Trim(const std::string& text) {
    constexpr auto blanks = " \t\r";
    const size_t begin = text.find_first_not_of(blanks);
    return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

inline std::vector<CsvLine> ReadCsv(const std::string& option, const std::string& path) {
    std::ifstream file(path);
    std::vector<CsvLine> lines;
    for (std::string line; std::getline(file, line);) {
        CsvLine parsed{option + " " + path + ", line " + std::to_string(lines.size() + 1), {}};
        std::istringstream rest(line + ",");
        for (std::string field; std::getline(rest, field, ',');) {
            parsed.fields.push_back(Trim(field));
        }
        lines.push_back(parsed);
    }
    if (!file.eof()) {
        Fail(option, " ", path, ": cannot be read: ", std::strerror(errno));
    }
    return lines;
}

using Rates = std::vector<std::vector<double>>; // [switch of stage 0][class], packets per slot

inline double Sum(const Rates& rates) {
    double sum = 0;
    for (const std::vector<double>& row : rates) {
        sum = std::accumulate(row.begin(), row.end(), sum);
    }
    return sum;
}

inline Rates ReadRates(const std::string& path, uint64_t switches) {
    const std::vector<CsvLine> lines = ReadCsv("--rates", path);
    if (lines.size() != switches) {
        Fail("--rates ", path, ": ", lines.size(), " lines, expected ", switches, ", one for each switch (--switches)");
    }
    Rates rates;
    for (const CsvLine& line : lines) {
        if (line.fields.size() != switches) {
            Fail(line.where, ": ", line.fields.size(), " numbers, expected ", switches, ", one for each class");
        }
        std::vector<double>& row = rates.emplace_back();
        for (const std::string& field : line.fields) {
            const auto rate = ParseNumber<double>(field);
            if (!rate || !(*rate >= 0 && std::isfinite(*rate))) {
                Fail(line.where, ": rate '", field, "', expected a number >= 0");
            }
            row.push_back(*rate);
        }
    }
    const double load = Sum(rates) / static_cast<double>(switches * switches);
    if (!(load > 0 && load < 1)) {
        Fail("--rates ", path, ": mean rate ", load, ", expected greater than 0 and less than 1 packet per slot");
    }
    return rates;
}

struct Arrival {
    uint64_t slot;
    uint64_t switch_index;
    uint64_t class_index;
    uint64_t count;
};

using RecordedArrivals = std::vector<std::vector<Arrival>>; // [slot]

inline RecordedArrivals ReadArrivals(const Options& options) {
    const std::vector<std::string> names = {"slot", "switch", "class", "count"};
    const uint64_t limits[] = {options.slots, options.switches, options.switches, 1'000'001};
    RecordedArrivals recorded(options.slots);
    std::vector<CsvLine> lines = ReadCsv("--arrivals", options.arrivals);
    if (!lines.empty() && lines.front().fields == names) {
        lines.erase(lines.begin());
    }
    for (const CsvLine& line : lines) {
        if (line.fields.size() != names.size()) {
            Fail(line.where, ": ", line.fields.size(), " fields, expected slot,switch,class,count");
        }
        uint64_t values[4];
        for (size_t i = 0; i < names.size(); ++i) {
            const auto value = ParseNumber<uint64_t>(line.fields[i]);
            if (!value || *value >= limits[i]) {
                Fail(line.where, ": ", names[i], " '", line.fields[i], "', expected an integer from 0 to ",
                     limits[i] - 1);
            }
            values[i] = *value;
        }
        recorded[values[0]].push_back({values[0], values[1], values[2], values[3]});
    }
    return recorded;
}

/// Sets the seed of ns-3's generator. Consecutive seeds alone would give correlated numbers, because the generator
/// is linear and a seed fills its whole state. The run number therefore moves each seed to a separate part of the
/// sequence.
inline void SetSeed(uint64_t seed) {
    ns3::RngSeedManager::SetSeed(static_cast<uint32_t>(seed));
    ns3::RngSeedManager::SetRun(seed);
}

template <typename Variable> ns3::Ptr<Variable> CreateRandom(int64_t stream) {
    const auto variable = ns3::CreateObject<Variable>();
    variable->SetStream(stream);
    return variable;
}

inline constexpr int64_t rates_stream = 0;
inline constexpr int64_t arrivals_stream = 1;

inline Rates DrawRates(const Options& options) {
    SetSeed(options.seed);
    const auto uniform = CreateRandom<ns3::UniformRandomVariable>(rates_stream);
    Rates rates(options.switches, std::vector<double>(options.switches));
    for (std::vector<double>& row : rates) {
        for (double& rate : row) {
            rate = uniform->GetValue(0.0, 1.0);
        }
    }
    const double scale = options.load * static_cast<double>(options.switches * options.switches) / Sum(rates);
    for (std::vector<double>& row : rates) {
        for (double& rate : row) {
            rate *= scale;
        }
    }
    return rates;
}

/// Source of the packets of a run.
struct Traffic {
    Rates rates; // Means of the Poisson draws, unless there are recorded arrivals.
    std::optional<RecordedArrivals> recorded;
    double rate; // Sum over the queues of stage 0, in packets per slot.
};

inline Traffic ReadTraffic(const Options& options) {
    Traffic traffic{options.rates.empty() ? DrawRates(options) : ReadRates(options.rates, options.switches), {}, 0.0};
    traffic.rate = Sum(traffic.rates);
    if (options.arrivals.empty()) {
        return traffic;
    }
    traffic.recorded = ReadArrivals(options);
    if (options.rates.empty()) {
        uint64_t arrived = 0;
        for (const std::vector<Arrival>& in_slot : *traffic.recorded) {
            for (const Arrival& arrival : in_slot) {
                arrived += arrival.count;
            }
        }
        traffic.rate = static_cast<double>(arrived) / static_cast<double>(options.slots);
    }
    return traffic;
}

} // namespace iswitch
