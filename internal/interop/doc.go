// Package interop holds tests of the stack against the MPTCP of the Linux kernel, packet for packet.
//
// Each test makes a network namespace of its own; TUN devices join the kernel's stack in it to ours, so that nothing is emulated and
// nothing leaves the namespace. Those of raw devices make two, joined by virtual Ethernet; one of them needs nftables. The tests need root, Linux with MPTCP (5.19 or newer for all of them), /dev/net/tun and iproute2, and
// skip where one is missing; with BRAID_INTEROP=require in the environment they fail instead. BRAID_PCAP names a folder for
// captures of the tests that fail.
//
// There is no code here but tests: other systems have nothing to test against.
package interop
