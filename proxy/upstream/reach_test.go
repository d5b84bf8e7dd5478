package upstream_test

import (
	"net"
	"testing"
	"time"

	"github.com/fourgate-dev/fourgate/engine"
	"github.com/fourgate-dev/fourgate/proxy/upstream"
)

func TestReachConnectsAndSendsNothing(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan int, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			heard <- -1
			return
		}
		n, _ := c.Read(make([]byte, 64)) // to the end
		_ = c.Close()
		heard <- n
	}()
	client := upstream.New(upstream.Options{MaxIdle: 4})
	defer client.Close()
	target, err := upstream.ParseTarget("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	limits := engine.Limits{Connect: 5 * time.Second}
	a := client.Start(target, &upstream.Request{}, limits, time.Time{})
	if err := a.Reach(); err != nil {
		t.Fatalf("a listener that is there: %v", err)
	}
	a.Close()
	if n := <-heard; n != 0 {
		t.Errorf("the upstream heard %d bytes, want none", n)
	}
	_ = ln.Close()
	gone := client.Start(target, &upstream.Request{}, limits, time.Time{})
	if err := gone.Reach(); err == nil || err.Kind != engine.NetConnRefused || !err.NotStarted {
		t.Errorf("without a listener: got %v, want a refused connection", err)
	}
}
