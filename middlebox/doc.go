// Package middlebox is what stands in networks and interferes with TCP: boxes that strip, drop and mangle options, cut and join segments, renumber
// them, rewrite payload, translate addresses and clamp windows. RFC 8684, Section 6, lists what hosts must live with.
//
// A Box is a calculator on packets: package netsim drives it in virtual time, package emulator in real time. It reads TCP in IP
// packets and, for address translation, datagrams whose addresses stand beside them; it holds no clock and delays nothing, Coalesce
// excepted.
package middlebox
