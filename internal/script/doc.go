// Package script runs packet scripts: short conversations with a TCP or MPTCP host in which the script plays the peer, segment by segment.
// The same script runs against a Stack of ours on a virtual clock and against the kernel of this machine over a TUN device, which is the
// oracle: what the kernel does not pass is wrong, or differs for a reason that the script names. It is for tests; programs do not use it,
// and it measures nothing.
//
// # The language
//
// One line is one step; # begins a comment. The tested host has 10.1.0.2 and 10.2.0.2 (fd00:1::2 with "set v6"), the script speaks from
// 10.1.0.1 or any other address.
//
//	set checksums          how the tested host is configured; before all other lines (see Setup)
//	use accepted           the lines of testdata/common/accepted
//	< S seq=0 mp_capable   the script sends a segment (see inject.go for the words)
//	> S. ack=1 mp_capable  the next segment of the flow must be like that: words may be preceded by ^ (not so) and have = < or >
//	>~ . ack=5             likewise, but bare ACKs before it that are not like that do not count
//	> F. @190ms..210ms     ... and comes in that time after the line before
//	> R|R.                 either flags (PSH never counts)
//	> none 300ms           for so long nothing may come
//	! read hello           a call of the tested host's application and what comes of it (see call.go)
//	+ 2s                   time passes
//	let a=0x12             $a has a value
//
// Sequence numbers (seq, ack, sack) count from the initial ones, data sequence numbers (dseq, dack, mp_fail) from the IDSNs, as RFC 8684 does:
// the first byte is 1. Each flow is a TCP connection of the script's: flow=2 on a line says which; without it the line is about flow 1.
//
// A value is a number, a $variable or a function of such: token($b), idsn($b), hmac($a,$b,$na,$nb), addr_hmac($b,$a,id,addr,port), flip(x).
// A variable without a value takes the one that it meets. The script's key is $a; the tested host's becomes $b.
//
// "kernel: differs RFC 8684, Section 3.7: why" stands above the line at which the kernel fails; a run against the kernel has to fail there.
// "kernel: slow" marks scripts that are not run against it because they take too long in real time, which is checked as well.
package script
