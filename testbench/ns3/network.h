// Switches, sinks and links as ns-3 nodes and devices, and packets that move over them.

#pragma once

#include "traffic.h"

#include "ns3/data-rate.h"
#include "ns3/header.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/simulator.h"

#include <deque>

namespace iswitch {

using ns3::Ptr;

inline constexpr uint64_t slot_us = 10;
inline constexpr uint64_t propagation_us = 1;
inline constexpr uint64_t link_mbps = 1000;
inline constexpr uint64_t packet_bytes = 1000;
inline constexpr uint64_t ppp_bytes = 2; // PointToPointNetDevice adds this header to each packet.
static_assert((packet_bytes + ppp_bytes) * 8 < (slot_us - propagation_us) * link_mbps,
              "a packet must reach the next stage before the next slot begins");

/// PointToPointNetDevice knows only the protocol numbers of IP, although no IP is used here.
inline constexpr uint16_t protocol_number = 0x0800;

/// Header of every packet on the wire.
class SlotHeader : public ns3::Header {
  public:
    static ns3::TypeId GetTypeId() {
        static const ns3::TypeId type =
            ns3::TypeId("iswitch::SlotHeader").SetParent<ns3::Header>().AddConstructor<SlotHeader>();
        return type;
    }

    ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }

    uint32_t GetSerializedSize() const override { return 8; }

    void Serialize(ns3::Buffer::Iterator at) const override {
        at.WriteHtonU32(class_index);
        at.WriteHtonU32(arrival_slot);
    }

    uint32_t Deserialize(ns3::Buffer::Iterator at) override {
        class_index = at.ReadNtohU32();
        arrival_slot = at.ReadNtohU32();
        return GetSerializedSize();
    }

    void Print(std::ostream& out) const override {
        out << "class " << class_index << ", arrived in slot " << arrival_slot;
    }

    uint32_t class_index = 0;
    uint32_t arrival_slot = 0;
};

inline SlotHeader HeaderOf(const Ptr<const ns3::Packet>& packet) {
    SlotHeader header;
    packet->PeekHeader(header);
    return header;
}

/// Number of packets, and the sum over them of the slots in which each was counted: from its arrival slot to its exit
/// slot, or to the end of the run if it is still inside.
struct Sojourns {
    void Add(uint64_t slots) {
        ++packets;
        sum_slots += slots;
    }

    uint64_t packets = 0;
    uint64_t sum_slots = 0;
};

/// Node with a FIFO queue for each class and numbered outgoing links. It is not copied, because its links' devices call
/// it.
class Switch {
  public:
    explicit Switch(uint64_t classes) : queues_(classes) {}
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    std::vector<uint64_t> QueueLengths() const {
        std::vector<uint64_t> lengths;
        for (const auto& queue : queues_) {
            lengths.push_back(queue.size());
        }
        return lengths;
    }

    void CountInside(uint64_t end_slot, Sojourns& inside) const {
        for (const auto& queue : queues_) {
            for (const auto& packet : queue) {
                inside.Add(end_slot - HeaderOf(packet).arrival_slot);
            }
        }
    }

    void AddLink(const Ptr<ns3::NetDevice>& device) { links_.push_back(device); }

    void Arrive(const Arrival& arrival) {
        SlotHeader header;
        header.class_index = static_cast<uint32_t>(arrival.class_index);
        header.arrival_slot = static_cast<uint32_t>(arrival.slot);
        for (uint64_t i = 0; i < arrival.count; ++i) {
            const auto packet = ns3::Create<ns3::Packet>(packet_bytes - header.GetSerializedSize());
            packet->AddHeader(header);
            queues_[arrival.class_index].push_back(packet);
        }
    }

    bool Receive(Ptr<ns3::NetDevice>, Ptr<const ns3::Packet> packet, uint16_t, const ns3::Address&) {
        queues_[HeaderOf(packet).class_index].push_back(packet->Copy());
        return true;
    }

    void SendHead(uint64_t class_index, uint64_t link) {
        const Ptr<ns3::Packet> head = queues_[class_index].front();
        queues_[class_index].pop_front();
        if (!links_[link]->Send(head, links_[link]->GetBroadcast(), protocol_number)) {
            Fail("link ", link, " of ns-3 node ", node->GetId(), " refused a packet");
        }
    }

    const Ptr<ns3::Node> node = ns3::CreateObject<ns3::Node>();

  private:
    std::vector<std::deque<Ptr<ns3::Packet>>> queues_; // [class]
    std::vector<Ptr<ns3::NetDevice>> links_;
};

/// Node where the packets of one class leave the network. It is not copied, because its links' devices call it.
class Sink {
  public:
    explicit Sink(uint64_t class_index) : class_index_(class_index) {}
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;

    /// Receives a packet that leaves the network. The exit slot comes from the clock of ns-3 and not from a slot
    /// counter, so that it also checks the timing of the links.
    bool Receive(Ptr<ns3::NetDevice>, Ptr<const ns3::Packet> packet, uint16_t, const ns3::Address&) {
        const SlotHeader header = HeaderOf(packet);
        if (header.class_index != class_index_) {
            Fail("the sink of class ", class_index_, " received a packet of class ", header.class_index);
        }
        const uint64_t exit_slot = static_cast<uint64_t>(ns3::Simulator::Now().GetMicroSeconds()) / slot_us;
        left.Add(exit_slot - header.arrival_slot + 1);
        return true;
    }

    const Ptr<ns3::Node> node = ns3::CreateObject<ns3::Node>();
    Sojourns left;

  private:
    uint64_t class_index_;
};

using QueueLengths = std::vector<std::vector<std::vector<uint64_t>>>; // [stage][switch][class]
using Links = std::vector<std::optional<uint64_t>>; // [link]: the class whose head packet is sent, or idle
using Routing = std::vector<std::vector<Links>>;    // [stage][switch]

inline uint64_t Total(const QueueLengths& queues) {
    uint64_t total = 0;
    for (const auto& stage : queues) {
        for (const auto& lengths : stage) {
            total = std::accumulate(lengths.begin(), lengths.end(), total);
        }
    }
    return total;
}

/// Link k of a switch leads to switch k of the next stage; link j of a last-stage switch is the exit of its queue j.
class Network {
  public:
    Network(uint64_t stages, uint64_t switches) : stages_(stages) {
        for (uint64_t i = 0; i < switches; ++i) {
            for (auto& stage : stages_) {
                stage.emplace_back(switches);
            }
            sinks_.emplace_back(i);
        }
        for (uint64_t s = 0; s + 1 < stages; ++s) {
            Connect(stages_[s], stages_[s + 1]);
        }
        Connect(stages_.back(), sinks_);
    }

    QueueLengths Queues() const {
        QueueLengths queues(stages_.size());
        for (size_t s = 0; s < stages_.size(); ++s) {
            for (const Switch& from : stages_[s]) {
                queues[s].push_back(from.QueueLengths());
            }
        }
        return queues;
    }

    void Arrive(const Arrival& arrival) { stages_.front()[arrival.switch_index].Arrive(arrival); }

    void Send(const Routing& routing) {
        for (size_t s = 0; s < routing.size(); ++s) {
            for (size_t i = 0; i < routing[s].size(); ++i) {
                for (size_t link = 0; link < routing[s][i].size(); ++link) {
                    if (routing[s][i][link]) {
                        stages_[s][i].SendHead(*routing[s][i][link], link);
                    }
                }
            }
        }
        for (Switch& last : stages_.back()) {
            SendExits(last);
        }
    }

    Sojourns CountLeft() const {
        Sojourns left;
        for (const Sink& sink : sinks_) {
            left.packets += sink.left.packets;
            left.sum_slots += sink.left.sum_slots;
        }
        return left;
    }

    Sojourns CountInside(uint64_t end_slot) const {
        Sojourns inside;
        for (const auto& stage : stages_) {
            for (const Switch& at : stage) {
                at.CountInside(end_slot, inside);
            }
        }
        return inside;
    }

  private:
    /// Connects each switch to each receiver (a switch of the next stage, or a sink), in the receivers' order.
    template <typename Receiver> static void Connect(std::deque<Switch>& senders, std::deque<Receiver>& receivers) {
        ns3::PointToPointHelper link;
        link.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate(link_mbps * 1'000'000)));
        link.SetChannelAttribute("Delay", ns3::TimeValue(ns3::MicroSeconds(propagation_us)));
        for (Switch& sender : senders) {
            for (Receiver& receiver : receivers) {
                const ns3::NetDeviceContainer ends = link.Install(sender.node, receiver.node);
                sender.AddLink(ends.Get(0));
                ends.Get(1)->SetReceiveCallback(ns3::MakeCallback(&Receiver::Receive, &receiver));
            }
        }
    }

    static void SendExits(Switch& last) {
        const std::vector<uint64_t> lengths = last.QueueLengths();
        for (size_t class_index = 0; class_index < lengths.size(); ++class_index) {
            if (lengths[class_index] > 0) {
                last.SendHead(class_index, class_index);
            }
        }
    }

    // Deques, because their elements keep their addresses, which the links' devices store.
    std::vector<std::deque<Switch>> stages_;
    std::deque<Sink> sinks_;
};

} // namespace iswitch
