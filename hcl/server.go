package hcl

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	hcl2 "github.com/hashicorp/hcl/v2"
)

func (d *decoder) server(s *section) {
	d.cfg.Server = Server{
		Listen:       s.address("listen", defaultListen),
		AdminListen:  s.address("admin_listen", defaultAdminListen),
		AdminToken:   s.secret("admin_token"),
		MaxBody:      s.size("max_body", defaultMaxBody, minMaxBody, maxMaxBody),
		DebugHeaders: s.flag("debug_headers"),
		DrainTimeout: s.duration("drain_timeout", defaultDrainTimeout, 0, maxDrain),
		Anonymous:    s.flag("anonymous"),
		Certificate:  s.inner("tls", &serverTLSShape).certificate(),
	}
	if d.cfg.Server.Listen == "" {
		s.failAt("listen", s.placeOfAttr("listen"), "No listen address",
			"The proxy needs an address, such as listen = %q.", defaultListen)
		d.cfg.Server.Listen = defaultListen
	}
}

// address reads host:port. An empty one is allowed here.
func (s *section) address(name, fallback string) string {
	address := s.str(name, fallback)
	if address == "" || s.isFaulty(join(s.path, name)) {
		return address
	}
	_, port, err := net.SplitHostPort(address)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n < 0 || n > 65535 {
		s.failAt(name, s.placeOfAttr(name), "Not a listen address",
			"Write host and port, such as \"127.0.0.1:8080\", \"[::1]:8080\" or \":8080\" for every interface.")
		return fallback
	}
	return address
}

// placeOfAttr returns the place of an argument, or of its block.
func (s *section) placeOfAttr(name string) hcl2.Range {
	if attr := s.attrs[name]; attr != nil {
		return attr.Expr.Range()
	}
	return s.place
}

// isLoopback says whether only this machine can reach an address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkListeners keeps a proxy that asks nobody who they are off the network.
func (d *decoder) checkListeners(start hcl2.Range) {
	server := d.cfg.Server
	at := func(name string) hcl2.Range {
		if where, ok := d.placeOf([]string{"server", name}); ok {
			return where
		}
		return start
	}
	_, hasCallers := d.anyBlock("caller")
	if !hasCallers && !server.Anonymous && !isLoopback(server.Listen) {
		d.fail([]string{"server", "listen"}, at("listen"), "Open to everyone without callers",
			"Without a caller block everyone who reaches this address spends your keys. Add caller blocks, "+
				"listen on 127.0.0.1, or set anonymous = true in the server block if that is meant.")
	}
	if hasCallers && server.Anonymous {
		d.warn(at("anonymous"), "Callers make this setting idle",
			"anonymous counts only without caller blocks; here every caller needs its key. Remove the setting.")
	}
	if server.AdminListen == "" {
		return
	}
	if server.AdminToken.Empty() && !d.isFaulty([]string{"server", "admin_token"}) && !isLoopback(server.AdminListen) {
		d.fail([]string{"server", "admin_listen"}, at("admin_listen"), "Admin open without a token",
			"The admin address shows traffic and changes routes. Listen on 127.0.0.1, or set admin_token = env(\"NAME\").")
	}
	if _, port, err := net.SplitHostPort(server.Listen); err == nil && port != "0" && server.Listen == server.AdminListen {
		d.fail([]string{"server", "admin_listen"}, at("admin_listen"), "Two listeners on one address",
			"listen and admin_listen are both %s. Give the admin listener another port.", server.Listen)
	}
}

// anyBlock returns the place of some block of a labelled type.
func (d *decoder) anyBlock(block string) (hcl2.Range, bool) {
	for key, at := range d.ranges {
		if label, ok := strings.CutPrefix(key, block+"\x00"); ok && !strings.Contains(label, "\x00") {
			return at, true
		}
	}
	return hcl2.Range{}, false
}
