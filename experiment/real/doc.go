// Package real runs a netsim.Scenario in real time: each flow's two ends are Engines with sockets of their own on loopback, and each path is an
// emulated one, with the same link.Specs that the simulator takes. Its Result is netsim's, and says besides how well the machine kept time.
//
// Check names what of a Scenario cannot be run that way. Beside runs a Scenario in both worlds.
//
// It does not judge results, and does not make a machine fast: a run whose packets were late says so (Timing.Late) and proves nothing.
package real
