package embedded_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// link is a way of another process to a server, which can be cut. What is sent meanwhile waits.
type link struct {
	server, far string   // addresses: where the server listens, and where it is for the process
	command     []string // starts the process
	cut, heal   func()
}

// namespaces is a link between two network namespaces of this machine.
func namespaces(t *testing.T) link {
	id := os.Getpid()
	space, here := fmt.Sprint("mesh-", id), fmt.Sprint("mesh", id)
	subnet, host := fmt.Sprint("198.18.", id>>6&255, "."), id&63*4
	ip := func(line string) error {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
		return nil
	}
	t.Cleanup(func() { ip("netns del " + space) }) // with both ends of the link
	for _, line := range []string{
		"netns add " + space,
		fmt.Sprintf("link add %s type veth peer name far netns %s", here, space),
		fmt.Sprintf("addr add %s%d/30 dev %s", subnet, host+1, here),
		fmt.Sprintf("-n %s addr add %s%d/30 dev far", space, subnet, host+2),
		fmt.Sprintf("link set %s up", here),
		fmt.Sprintf("-n %s link set far up", space),
	} {
		if err := ip(line); err != nil { // the other link shows the same
			t.Skipf("network namespaces are not permitted here: %v", err)
		}
	}
	set := func(state string) func() {
		return func() { require.NoError(t, ip(fmt.Sprintf("link set %s %s", here, state))) }
	}
	_, port, err := net.SplitHostPort(address(t))
	require.NoError(t, err)
	at := fmt.Sprintf("%s%d:%s", subnet, host+1, port)
	return link{at, at, []string{"ip", "netns", "exec", space}, set("down"), set("up")}
}

// proxy is a link through a proxy that holds bytes back.
func proxy(t *testing.T) link {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex // while the link is cut, the test has it
	to := address(t)
	forward := func(to, from net.Conn) {
		defer to.Close()
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if err != nil {
				return
			}
			mu.Lock()
			_, err = to.Write(buffer[:n])
			mu.Unlock()
			if err != nil {
				return
			}
		}
	}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			dest, err := net.Dial("tcp", to)
			if err != nil {
				from.Close()
				continue
			}
			go forward(from, dest)
			go forward(dest, from)
		}
	}()
	return link{to, l.Addr().String(), nil, mu.Lock, mu.Unlock}
}
