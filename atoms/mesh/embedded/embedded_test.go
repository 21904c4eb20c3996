package embedded_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/atoms/mesh/embedded"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// cutTime is how long a link is cut. EPHEMERAL_MESH_CUT sets it.
var cutTime = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("EPHEMERAL_MESH_CUT")); err == nil {
		return d
	}
	return 2 * time.Second
}()

// A link is cut and keeps what is sent meanwhile. Both sides say that they are alone; after it,
// both hold the same again, and what is old is not raised.
func TestCut(t *testing.T) {
	t.Parallel()
	for name, lay := range map[string]func(t *testing.T) link{"namespaces": namespaces, "proxy": proxy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testCut(t, lay(t))
		})
	}
}

func testCut(t *testing.T, l link) {
	s := run(t, embedded.Options{Clients: l.server, Secret: secret})
	old, any := options("strict"), options("any")
	old.Lease, old.MaxLate = lease, lease/3
	any.Lease, any.MaxLate = lease, -1
	strict, lenient := join(t, s.Conn(), old), join(t, s.Conn(), any)
	all := options("far")
	all.MinNodes = 3
	far := start(t, l.far, all, l.command...)
	far.do("gone mesh.alone")
	far.do("hold a.held")
	strict.present(t, "a.held")
	lenient.present(t, "a.held")

	begun, seen := time.Now(), strict.seen("far")
	l.cut()
	strict.gone(t, "a.held")
	assert.GreaterOrEqual(t, time.Since(seen), lease, "not before the end of the lease")
	far.do("wait mesh.alone")
	for i := range 100 {
		far.do(fmt.Sprint("raise a.old", i))
	}
	far.do("hold a.new")
	far.do("release a.held")
	time.Sleep(max(time.Until(begun.Add(cutTime)), lease/2)) // what was raised is older than MaxLate
	l.heal()

	begun = time.Now()
	strict.present(t, "a.new")
	t.Logf("healed after %v: the same is held after %v", cutTime, time.Since(begun).Round(time.Millisecond))
	lenient.present(t, "a.new")
	far.do("gone mesh.alone")
	assert.Contains(t, far.do("flush"), "strict:100")
	assert.False(t, strict.sink.Has("a.held") || lenient.sink.Has("a.held"))
	assert.Zero(t, strict.sink.Count("a.old*"))
	s1, s2 := strict.Stats(), lenient.Stats()
	assert.EqualValues(t, 100, s1.Late+s1.Missed)
	assert.EqualValues(t, 100, s2.Raised+s2.Missed, "without a limit of the age, all look new")
	if cutTime < 10*time.Second { // in a longer cut, NATS may connect again and lose what it has sent
		assert.Zero(t, s1.Missed+s2.Missed)
	}
}

// A slow handler loses signals. All are counted.
func TestSlowHandler(t *testing.T) {
	t.Parallel()
	conn := run(t, embedded.Options{}).Conn()
	slow := options("two")
	slow.MaxLate = 500 * time.Millisecond
	one, two := join(t, conn, options("one")), join(t, conn, slow)
	one.gone(t, mesh.SignalAlone)
	require.NoError(t, one.Flush(soon(t)))
	two.sink.Subscribe("a.*", func(signals.Signal) { time.Sleep(100 * time.Microsecond) })
	n := 4000
	if os.Getenv("EPHEMERAL_LONG") != "" {
		n = 20_000
	}
	for range n {
		one.sink.Raise("a.fact")
	}
	release := one.sink.Hold("a.held", "", 0)
	two.present(t, "a.held")
	one.Flush(soon(t)) // it may report missed ones
	s := two.Stats()
	t.Logf("%v", s)
	assert.EqualValues(t, n, s.Raised+s.Missed+s.Late)
	assert.Len(t, two.Nodes(), 1)
	release()
	two.gone(t, "a.held")
}

// When all is quiet, monitors of all nodes count the same.
func TestMonitors(t *testing.T) {
	t.Parallel()
	conn := run(t, embedded.Options{}).Conn()
	var nodes []*node
	var monitors []*signals.Monitor
	for i := range 5 {
		opts := options(fmt.Sprint("node-", i))
		opts.MinNodes = 5
		n := join(t, conn, opts)
		nodes, monitors = append(nodes, n), append(monitors, n.sink.Monitor("a.*", time.Hour))
	}
	for _, n := range nodes {
		n.gone(t, mesh.SignalAlone)
		require.NoError(t, n.Flush(soon(t)))
	}
	for range 2000 {
		n := nodes[rand.IntN(len(nodes))]
		if rand.IntN(10) > 0 {
			n.sink.Raise("a.fact")
		} else {
			n.sink.Hold("a.held", "", 0)()
		}
	}
	for _, n := range nodes {
		require.NoError(t, n.Flush(soon(t)))
	}
	for i := range nodes {
		assert.Equal(t, monitors[0].Count(), monitors[i].Count(), "node %d", i)
		assert.Zero(t, nodes[i].Stats().Missed)
	}
	assert.Positive(t, monitors[0].Count())
}

// Servers of three processes find each other by one peer; a server with another secret does not
// get in.
func TestServers(t *testing.T) {
	t.Parallel()
	first := address(t)
	var nodes []*node
	for i, at := range []string{first, address(t), address(t)} {
		s := run(t, embedded.Options{Listen: at, Peers: []string{first}, Secret: secret})
		nodes = append(nodes, join(t, s.Conn(), options(fmt.Sprint("node-", i))))
	}
	stranger := join(t, run(t, embedded.Options{Listen: address(t), Peers: []string{first}, Secret: "other"}).Conn(), options("stranger"))
	nodes[1].sink.Hold("a.held", "", 0)
	nodes[0].present(t, "a.held")
	nodes[2].present(t, "a.held")
	assert.False(t, stranger.sink.Has("a.held"))
	assert.Empty(t, stranger.Nodes())
}

// With TLS, servers show certificates to each other.
func TestTLS(t *testing.T) {
	t.Parallel()
	pool := x509.NewCertPool()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(crand.Reader, about, about, &key.PublicKey, key)
	require.NoError(t, err)
	about, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	pool.AddCert(about)
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	first, second := address(t), address(t)
	one := join(t, run(t, embedded.Options{Listen: first, TLS: config}).Conn(), options("one"))
	join(t, run(t, embedded.Options{Listen: address(t), Peers: []string{first}, TLS: &tls.Config{RootCAs: pool}}).Conn(), options("stranger"))
	two := join(t, run(t, embedded.Options{Listen: second, Peers: []string{first}, TLS: config}).Conn(), options("two"))
	one.sink.Hold("a.held", "", 0)
	two.present(t, "a.held")
	one.gone(t, mesh.SignalAlone)
	assert.Len(t, one.Nodes(), 1, "the stranger has no certificate")
}

func TestOptions(t *testing.T) {
	checked := &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert}
	for want, opts := range map[string]embedded.Options{
		"other machines can reach": {Listen: ":6222"},
		"Clients is \"0.0.0.0:1\"": {Clients: "0.0.0.0:1", TLS: &tls.Config{}},
		"must be HOST:PORT":        {Listen: "shop", Secret: secret},
		"from 1 to 65535":          {Listen: "localhost:0"},
		"Listen is empty":          {Peers: []string{"shop:6222"}},
		`Peers has "shop"`:         {Listen: "127.0.0.1:6222", Peers: []string{"shop"}},
		`Listen is ":x"`:           {Listen: ":x", TLS: checked},
	} {
		_, err := embedded.New(t.Context(), opts)
		assert.ErrorContains(t, err, want)
	}
	at := address(t)
	s := run(t, embedded.Options{Clients: at, Secret: secret})
	_, err := embedded.New(t.Context(), embedded.Options{Clients: at})
	assert.ErrorContains(t, err, at, "in use")
	_, err = nats.Connect(at)
	assert.ErrorIs(t, err, nats.ErrAuthorization)
	assert.NoError(t, s.Close())
	assert.NoError(t, s.Close())
}
