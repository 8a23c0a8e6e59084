package link

import "time"

// Counters say what became of a link's packets. Every packet offered is dropped on entry, in the queue, on the wire, lost or
// delivered: Offered + Duplicated = Delivered + the drops + what is inside.
type Counters struct {
	Offered      int64 `json:"offered"` // packets given to Enqueue
	OfferedBytes int64 `json:"offered_bytes"`

	Delivered      int64 `json:"delivered"` // packets that came out, duplicates included
	DeliveredBytes int64 `json:"delivered_bytes"`

	DropsQueue int64 `json:"drops_queue"` // the queue was full
	DropsLoss  int64 `json:"drops_loss"`  // lost at random on the wire
	DropsDown  int64 `json:"drops_down"`  // the link was down
	DropsMTU   int64 `json:"drops_mtu"`   // larger than the link's MTU

	Duplicated int64 `json:"duplicated"`
	Corrupted  int64 `json:"corrupted"`
	Reordered  int64 `json:"reordered"` // held back by the reordering cause

	Departed        int64         `json:"departed"` // packets that left the queue
	QueueDelay      time.Duration `json:"queue_delay_ns"`
	MaxQueueDelay   time.Duration `json:"max_queue_delay_ns"` // including transmission
	MaxQueueBytes   int           `json:"max_queue_bytes"`
	MaxQueuePackets int           `json:"max_queue_packets"`
}

// MeanQueueDelay is the mean time that a packet spent waiting and being transmitted.
func (c *Counters) MeanQueueDelay() time.Duration {
	if c.Departed == 0 {
		return 0
	}
	return c.QueueDelay / time.Duration(c.Departed)
}

// Drops is the number of packets that did not get through, whatever the cause.
func (c *Counters) Drops() int64 { return c.DropsQueue + c.DropsLoss + c.DropsDown + c.DropsMTU }
