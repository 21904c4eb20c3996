package browser

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ephemeralgo/ephemeral/core"
	"github.com/ephemeralgo/ephemeral/patterns/statuspage"
)

const threats = "../../docs/statuspage-security.md"

// proxyTo starts a proxy with a configuration in front of a page, and returns its address.
func proxyTo(t *testing.T, name, config, backend string) string {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		if name == "nginx" && os.Getenv("EPHEMERAL_NGINX_REQUIRED") != "" {
			t.Fatal("there is no nginx: apt-get install --no-install-recommends nginx")
		}
		t.Skipf("there is no %s", name)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "config")
	config = strings.ReplaceAll(config, "127.0.0.1:6060", backend)
	args := []string{"run", "--adapter", "caddyfile", "--config", file}
	if name == "nginx" {
		args = []string{"-p", dir, "-e", "stderr", "-c", file}
		config = fmt.Sprintf("daemon off; master_process off; pid pid; events {}\nhttp {\naccess_log off;\nserver {\nlisten %s;\n%s\n}\n}", address, config)
	} else {
		_, port, _ := net.SplitHostPort(address)
		config = "{\nadmin off\nauto_https off\n}\n" + strings.Replace(config, "status.example {", "http://status.example:"+port+" {\nbind 127.0.0.1", 1)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	var log strings.Builder
	cmd.Env, cmd.Stderr = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir), &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return address
		}
		if time.Since(start) > patience {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("%s does not listen: %v\n%s\n%s", name, err, config, log.String())
		}
	}
}

// The snippets of the documentation are tried with real proxies. A token keeps strangers out
// behind these proxies, and behind a proxy that adds no header.
func TestBehindProxy(t *testing.T) {
	if os.Getenv("EPHEMERAL_LONG") == "" {
		t.Skip("it starts proxies: set EPHEMERAL_LONG")
	}
	text, err := os.ReadFile(threats)
	if err != nil {
		t.Fatal(err)
	}
	configs := map[string][2]string{"bare": {"nginx", "location / { proxy_pass http://127.0.0.1:6060; }"}}
	for _, m := range regexp.MustCompile("(?s)```(nginx|caddy)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		configs[m[1]] = [2]string{m[1], m[2]}
	}
	if len(configs) != 3 {
		t.Fatalf("%s has %d snippets, want one for nginx and one for Caddy", threats, len(configs)-1)
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			const secret = "the secret of this test"
			p := newProgram(t, func(name string) string { return name })
			page := core.Must(statuspage.New(statuspage.Options{
				Coordinators: []core.Inspector{p.orders}, View: core.Must(statuspage.Token(secret)), Hosts: []string{"status.example"},
				Allow: func(*http.Request, statuspage.Action) bool { return true },
			}))
			defer page.Close()
			backend, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.StripPrefix(prefix, page)}
			go server.Serve(backend)
			defer server.Close()
			address := proxyTo(t, config[0], config[1], backend.Addr().String())
			_, port, _ := net.SplitHostPort(address)
			site := "http://status.example:" + port
			// status.example is the proxy.
			client := &http.Client{
				Jar:       core.Must(cookiejar.New(nil)),
				Transport: &http.Transport{Dial: func(network, _ string) (net.Conn, error) { return net.Dial(network, address) }},
			}
			defer client.CloseIdleConnections()
			ask := func(method, target, origin string) (int, *http.Response) {
				t.Helper()
				var body io.Reader
				if method == http.MethodPost {
					body = strings.NewReader(`{"action":"pause","coordinator":"orders"}`)
				}
				r := core.Must(http.NewRequest(method, site+prefix+target, body))
				if body != nil {
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Origin", origin)
				}
				answer, err := client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { answer.Body.Close() })
				return answer.StatusCode, answer
			}
			for method, target := range map[string]string{"GET": "/api/overview", "POST": "/api/act"} {
				if code, _ := ask(method, target, site); code != 401 {
					t.Errorf("%s %s without a token: %d", method, target, code)
				}
			}
			code, answer := ask("GET", "/?token="+escaped(secret), "")
			if code != 200 || answer.Request.URL.String() != site+prefix+"/" {
				t.Fatalf("the link leads to %d at %s", code, answer.Request.URL)
			}
			code, answer = ask("GET", "/api/stream?view=overview", "")
			if line, err := bufio.NewReader(answer.Body).ReadString('\n'); code != 200 || !strings.HasPrefix(line, "data: {") {
				t.Errorf("the stream is %d, %q, %v", code, line, err)
			}
			if code, _ := ask("POST", "/api/act", "https://evil.example"); code != 403 || p.orders.Stats().Paused {
				t.Errorf("an action for another site: %d", code)
			}
			if name == "bare" {
				return // the Host header differs from the site, so a browser without Sec-Fetch-Site cannot act
			}
			if code, _ := ask("POST", "/api/act", site); code != 200 || !p.orders.Stats().Paused {
				t.Errorf("an action of the page: %d", code)
			}
		})
	}
}
