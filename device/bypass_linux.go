package device

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bypass knows what a packet would pass by that leaves through a packet socket and not through the kernel's IP: its packet filter, connection
// tracking (which takes what follows data that it has not seen for invalid), address translation, IPsec. Where there is any, packets must
// not go that way. It takes CAP_NET_ADMIN to find out: without, nothing is harmless.
type bypass struct {
	family uint8
	until  time.Time // the answer holds
	answer bool
	filter *netlink    // nil: a kernel without a packet filter
	policy *netlink    // nil: a kernel without IPsec
	tables [2]*os.File // the names of iptables' tables, IPv4 and IPv6; nil: there is no such thing so far
	failed bool        // it could not be asked
}

func (b *bypass) init(family uint8) {
	b.family = family
	open := func(protocol int) *netlink {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
		if err != nil {
			b.failed = b.failed || err != unix.EPROTONOSUPPORT
			return nil
		}
		return &netlink{fd: fd}
	}
	b.policy, b.filter = open(unix.NETLINK_XFRM), open(unix.NETLINK_NETFILTER)
	b.legacy()
}

func (b *bypass) close() {
	for _, nl := range []*netlink{b.filter, b.policy} {
		if nl != nil {
			nl.close()
		}
	}
	b.filter, b.policy = nil, nil
	for i, f := range b.tables {
		if f != nil {
			f.Close()
		}
		b.tables[i] = nil
	}
}

// harmless reports whether there is nothing to pass by.
func (b *bypass) harmless(now time.Time) bool {
	if now.Before(b.until) {
		return b.answer
	}
	b.until = now.Add(hopKept)
	b.answer = !b.failed && !b.encrypts() && !b.filters()
	return b.answer
}

// filters reports whether anything may look at packets that leave. Older kernels, and those made without nfnetlink_hook, do not say: then no table of
// the packet filter's may be there.
func (b *bypass) filters() bool {
	const localOut, postRouting = 3, 4 // NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING
	out, err := b.hooked(localOut)
	if err == nil && !out {
		out, err = b.hooked(postRouting)
	}
	if err == nil {
		return out
	}
	return b.nftables() || b.legacy()
}

// nftables reports whether there are tables of nf_tables. A kernel without nf_tables says that it does not understand.
func (b *bypass) nftables() bool {
	const getTables = 10<<8 | 1 // NFNL_SUBSYS_NFTABLES, NFT_MSG_GETTABLE
	if b.filter == nil {
		return false
	}
	b.filter.begin(getTables, unix.NLM_F_DUMP)
	b.filter.body([4]byte{}) // struct nfgenmsg: all families
	found := false
	err := b.filter.dump(func([]byte) { found = true })
	return found || err != nil && err != unix.EINVAL
}

// legacy reports whether there are tables of iptables' own.
func (b *bypass) legacy() bool {
	found := false
	for i, name := range [...]string{"/proc/thread-self/net/ip_tables_names", "/proc/thread-self/net/ip6_tables_names"} {
		if b.tables[i] == nil {
			f, err := os.Open(name)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return true
			}
			b.tables[i] = f
		}
		n, err := b.tables[i].ReadAt(make([]byte, 1), 0)
		found = found || n > 0 || err != io.EOF
	}
	return found
}

// encrypts reports whether the machine has policies of IPsec for packets that leave.
func (b *bypass) encrypts() bool {
	const (
		getSPDInfo = 0x25 // XFRM_MSG_GETSPDINFO
		counts     = 1    // XFRMA_SPD_INFO: struct xfrmu_spdinfo
		outgoing   = 4    // where in it the number of policies for what leaves stands
	)
	if b.policy == nil {
		return false
	}
	b.policy.begin(getSPDInfo, 0)
	b.policy.body(uint32(0))
	answer, err := b.policy.ask()
	if err != nil || len(answer) < 4 {
		return true
	}
	found := false
	attributes(answer[4:], func(kind uint16, value []byte) {
		if kind == counts && len(value) >= outgoing+4 {
			found = binary.NativeEndian.Uint32(value[outgoing:]) > 0
		}
	})
	return found
}

// hooked reports whether anything looks at packets at one of the packet filter's hooks (nfnetlink_hook, since Linux 5.14). The checks of
// SELinux are about sockets: both kinds pass them.
func (b *bypass) hooked(hook uint32) (found bool, err error) {
	const (
		getHooks = 12 << 8 // NFNL_SUBSYS_HOOK, NFNL_MSG_HOOK_GET
		number   = 1       // NFNLA_HOOK_HOOKNUM
		function = 4       // NFNLA_HOOK_FUNCTION_NAME
		header   = 4       // struct nfgenmsg
	)
	if b.filter == nil {
		return false, unix.EPROTONOSUPPORT
	}
	b.filter.begin(getHooks, unix.NLM_F_DUMP)
	b.filter.body([header]byte{b.family})
	b.filter.attribute(number, binary.BigEndian.AppendUint32(nil, hook))
	err = b.filter.dump(func(body []byte) {
		name := ""
		attributes(body[min(header, len(body)):], func(kind uint16, value []byte) {
			if kind == function {
				name = string(value)
			}
		})
		found = found || !strings.HasPrefix(name, "selinux_")
	})
	return found, err
}
