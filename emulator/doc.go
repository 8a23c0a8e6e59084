// Package emulator runs link.Links in real time: network paths of any quality between sockets of one machine.
//
// A Path listens on a UDP port. What a client sends there crosses the uplink, the same calculator that the simulator uses, and
// goes on to the server from a socket of the client's own, as through a NAT; answers cross the downlink back. Links can be changed,
// cut and restored while they run. How late packets leave, measured against when the link says that they arrive, is counted: an
// emulation whose lateness is not small against the delays it emulates says nothing, and Report shows it.
//
// A Bridge does the same to whole IP packets between pairs of devices, through chains of links that paths may share and through middleboxes;
// package testbed puts network namespaces at its ends.
//
// It knows nothing of what packets mean, and makes no interfaces and namespaces itself.
package emulator
