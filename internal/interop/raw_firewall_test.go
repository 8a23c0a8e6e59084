//go:build linux

package interop

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// strictFirewall lets the service's connections in, ours and their answers out, and nothing that connection tracking finds odd in either direction; it
// refuses the rest with a RST.
const strictFirewall = `
table inet firewall {
	chain in {
		type filter hook input priority 0; policy drop;
		ct state invalid counter drop
		ct state established,related counter accept
		tcp dport 5000 ct state new counter accept
		meta l4proto ipv6-icmp accept
		meta l4proto tcp counter reject with tcp reset
	}
	chain out {
		type filter hook output priority 0; policy accept;
		ct state invalid counter drop
	}
}`

// TestRawFirewall: the machine's own packet filter and connection tracking see the stack's connections whole, as if they were the kernel's. Nothing is sent
// past them.
func TestRawFirewall(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil {
		if os.Getenv("BRAID_INTEROP") == "require" {
			t.Fatal("needs nftables")
		}
		t.Skip("needs nftables")
	}
	up, down := stream(16*mib, 36), stream(16*mib, 37)
	for _, role := range roles {
		t.Run(role.name, func(t *testing.T) {
			w := newRawWorld(t, rawSetup{})
			nft := func(stdin string, args ...string) (out string) {
				t.Helper()
				w.own.Must(func() error {
					cmd := exec.Command("nft", args...)
					cmd.Stdin = strings.NewReader(stdin)
					b, err := cmd.CombinedOutput()
					if out = string(b); err != nil {
						return fmt.Errorf("nft %v: %w: %s", args, err, out)
					}
					return nil
				})
				return out
			}
			nft(strictFirewall, "-f", "-")
			p := role.dial(w.world, true)
			exchange(t, p, up, down)
			w.wantMPTCP(p)
			w.silent()
			rules := nft("", "list", "ruleset")
			if !strings.Contains(rules, "counter packets 0 bytes 0 reject with tcp reset") || strings.Count(rules, "ct state invalid counter packets 0 bytes 0 drop") != 2 {
				t.Errorf("the firewall has found something odd:\n%s", rules)
			}
		})
	}
}
