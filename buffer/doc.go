// Package buffer holds payload: what the application wrote until every subflow has let go of it, and what arrived
// until the application has read it.
//
// A Pool hands out the memory of one Stack and counts it. Send keeps one connection's outgoing stream in fixed-size
// blocks, addressed by offset and counted by reference. Chunk is one received payload; Reassembly puts chunks into order.
// Payload is copied into this package once and out of it once. The package knows neither sequence numbers on the wire nor
// who sends what. Nothing here is safe for concurrent use.
package buffer
