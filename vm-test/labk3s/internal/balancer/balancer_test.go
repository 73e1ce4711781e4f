package balancer

import (
	"context"
	"io"
	"net"
	"testing"
)

// server answers every connection with its name.
func server(t *testing.T, name string) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, name)
			conn.Close()
		}
	}()
	return l.Addr().String(), func() { l.Close() }
}

func ask(t *testing.T, b *Balancer) string {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGoesOnToTheNextServer(t *testing.T) {
	first, stopFirst := server(t, "first")
	second, stopSecond := server(t, "second")
	b, err := Listen("127.0.0.1:0", first)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Serve(ctx) }()

	if got := ask(t, b); got != "first" {
		t.Errorf("the first answer is from %q", got)
	}
	b.Set([]string{second, first})
	if got := ask(t, b); got != "first" {
		t.Errorf("with more servers, the answer is from %q", got)
	}
	stopFirst()
	for range 2 {
		if got := ask(t, b); got != "second" {
			t.Errorf("without the first, the answer is from %q", got)
		}
	}
	b.Set(nil)
	if got := ask(t, b); got != "second" {
		t.Errorf("after an empty list, the answer is from %q", got)
	}
	stopSecond()
	if got := ask(t, b); got != "" {
		t.Errorf("without servers, the answer is %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
