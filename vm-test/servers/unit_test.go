package servers

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// unitWord makes this program the stand-in for systemd's care of one unit: it names the
// unit. systemctl and journalctl of the hosts are scripts that read what it writes.
const unitWord = "SLIPWAY_TEST_UNIT"

// unitDir is where a host's stand-in keeps what it knows.
const unitDir = "/run/units"

// restartPause is k3s.service's RestartSec.
const restartPause = 5 * time.Second

// supervise runs a unit as Type=notify and Restart=always say: active once it says so,
// started again when it ends. SIGHUP restarts it, SIGTERM stops it.
func supervise(unit string) int {
	u := supervised{unit: unit, signals: make(chan os.Signal, 4)}
	signal.Notify(u.signals, syscall.SIGTERM, syscall.SIGHUP)
	u.write("pid", fmt.Sprint(os.Getpid()))
	u.write("restarts", "0")
	for restarts := 0; ; {
		u.write("state", "activating")
		again, asked := u.run()
		if !again {
			u.write("state", "inactive")
			os.Remove(u.file("pid"))
			return 0
		}
		u.write("state", "activating")
		if asked {
			continue
		}
		restarts++
		u.write("restarts", fmt.Sprint(restarts))
		select {
		case <-time.After(restartPause):
		case s := <-u.signals:
			if s == syscall.SIGTERM {
				u.write("state", "inactive")
				os.Remove(u.file("pid"))
				return 0
			}
		}
	}
}

type supervised struct {
	unit    string
	signals chan os.Signal
}

func (u supervised) file(what string) string { return filepath.Join(unitDir, u.unit+"."+what) }

func (u supervised) write(what, value string) {
	os.WriteFile(u.file(what)+".new", []byte(value+"\n"), 0o644)
	os.Rename(u.file(what)+".new", u.file(what))
}

// run runs the program once. again says that it shall run again, asked that somebody
// asked for it.
func (u supervised) run() (again, asked bool) {
	os.Remove(u.file("notify"))
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: u.file("notify"), Net: "unixgram"})
	if err != nil {
		return false, false
	}
	defer socket.Close()
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := socket.Read(b)
			if err != nil {
				return
			}
			if strings.Contains(string(b[:n]), "READY=1") {
				u.write("state", "active")
			}
		}
	}()
	log, err := os.OpenFile(u.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return false, false
	}
	defer log.Close()
	role := "server"
	if u.unit == "k3s-agent.service" {
		role = "agent"
	}
	cmd := exec.Command("k3s", role)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+u.file("notify"))
	both := &stamped{to: log}
	cmd.Stdout, cmd.Stderr = both, both
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(log, err)
		return true, false
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true, false
	case s := <-u.signals:
		cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		return s == syscall.SIGHUP, true
	}
}

// stamped writes lines with the time before them, as a journal has it.
type stamped struct {
	mu   sync.Mutex
	to   io.Writer
	line []byte
}

func (s *stamped) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line = append(s.line, p...)
	for {
		at := bytes.IndexByte(s.line, '\n')
		if at < 0 {
			return len(p), nil
		}
		fmt.Fprintf(s.to, "%d %s\n", time.Now().Unix(), s.line[:at])
		s.line = s.line[at+1:]
	}
}

// systemctl is the part of it that bootstrap and slipway-node use. %s is this program.
const systemctl = `d=/run/units; mkdir -p $d
for last; do :; done
running() { [ -e $d/$last.pid ] && kill -0 "$(cat $d/$last.pid)" 2>/dev/null; }
launch() { SLIPWAY_TEST_UNIT=$last setsid %s </dev/null >/dev/null 2>&1 & }
get() { cat "$d/$last.$1" 2>/dev/null || echo "$2"; }
case "$1" in
show)
	case "$*" in
	*--value*) get state inactive ;;
	*) echo "ActiveState=$(get state inactive)"; echo Result=success; echo ConditionResult=yes; echo "NRestarts=$(get restarts 0)" ;;
	esac ;;
start) running || { echo activating >$d/$last.state; launch; } ;;
restart) if running; then kill -HUP "$(cat $d/$last.pid)"; else launch; fi ;;
stop) ! running || kill -TERM "$(cat $d/$last.pid)" ;;
is-active) get state inactive ;;
reset-failed | daemon-reload) ;;
*) echo "this systemctl cannot $1" >&2; exit 1 ;;
esac`

// journalctl knows one unit, and from when on.
const journalctl = `for a; do case "$a" in --unit=*) unit=${a#--unit=} ;; --since=@*) since=${a#--since=@} ;; esac; done
[ ! -e /run/units/$unit.log ] || awk -v since="$since" '$1 >= since { sub(/^[0-9]+ /, ""); print }' /run/units/$unit.log | tail -n 400`
