package main

import (
	"log/slog"
	"net"
	"os"
)

// notifier makes the function that tells systemd that the node is up (sd_notify(3)).
// The API server, the kubelet and containerd would tell it, too, each of itself and
// long before; so the socket leaves the environment.
func notifier() (ready func()) {
	socket := os.Getenv("NOTIFY_SOCKET")
	os.Unsetenv("NOTIFY_SOCKET")
	if socket == "" {
		return func() {}
	}
	return func() { notify(socket) }
}

func notify(socket string) {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		slog.Error("telling systemd", "err", err)
		return
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1\n")); err != nil {
		slog.Error("telling systemd", "err", err)
	}
}
