package main

import (
	"log/slog"
	"net"
	"os"
)

// notifyReady tells systemd that the node is up (sd_notify(3)).
func notifyReady() {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return
	}
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
