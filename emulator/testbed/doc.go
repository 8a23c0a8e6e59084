// Package testbed makes two network namespaces, a client's and a server's, joined by TUN interfaces whose packets cross an emulator.Bridge: a
// network of any quality for any program of this machine, and for the kernel's own TCP and MPTCP, without netem.
//
// It takes root on Linux and iproute2. It sets up interfaces, addresses, routes and the kernel's MPTCP endpoints; what the paths do to packets is
// the business of package emulator, and what runs in the namespaces the caller's.
package testbed
