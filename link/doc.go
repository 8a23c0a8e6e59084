// Package link is a path as a pure calculator: a Queue that serves packets at a rate or by a delivery trace and drops from
// its tail, then a Wire that delays, loses, reorders, duplicates and corrupts them.
//
// A Link is driven: package netsim asks it in virtual time, package emulator in real time. It holds no packets' meaning, no
// clock and no timer; each of its random decisions comes from a stream of its own, named from the seed and the link's name.
package link
