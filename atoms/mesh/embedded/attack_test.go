package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	nats "github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ephemeralgo/ephemeral/atoms/mesh"
	"github.com/ephemeralgo/ephemeral/core/signals"
)

// plain starts a server as others run it, and returns what ends it.
func plain(t *testing.T, opts *server.Options) (url string, stop func()) {
	t.Helper()
	opts.Host, opts.NoSigs, opts.NoLog = "127.0.0.1", true, true
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(opts)
	require.NoError(t, err)
	s.Start()
	require.True(t, s.ReadyForConnections(10*time.Second))
	stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	t.Cleanup(stop)
	return s.ClientURL(), stop
}

func dial(t *testing.T, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url, append(opts, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))...)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

// Messages are not larger than the server permits. What alone is too large is counted and signalled, and hides nothing.
func TestMaxPayload(t *testing.T) {
	t.Parallel()
	for _, limit := range []int32{32 << 10, 4 << 10} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			url, _ := plain(t, &server.Options{MaxPayload: limit})
			one, two := join(t, dial(t, url), options("one")), join(t, dial(t, url), options("two"))
			one.gone(t, mesh.SignalAlone)
			two.gone(t, mesh.SignalAlone)
			large := strings.Repeat("x", int(limit))
			one.sink.Hold("a.large", large, 0)
			for i := range 300 {
				one.sink.Hold("a.held", fmt.Sprint(i, large[:200]), 0)
			}
			for i := range 2000 {
				one.sink.RaiseKey("a.fact", fmt.Sprint(i, large[:100]))
			}
			one.sink.RaiseKey("a.fact", large)
			var missed *mesh.MissedError
			assert.ErrorAs(t, one.Flush(soon(t)), &missed)
			assert.Equal(t, &mesh.MissedError{Nodes: map[string]uint64{"two": 2}}, missed)
			assert.Equal(t, []int{300, 2000}, []int{two.sink.Count("a.held"), two.sink.Count("a.fact")})
			s := one.Stats()
			assert.Equal(t, []uint64{2000, 2, 300}, []uint64{s.Sent, s.Unsent, uint64(s.Held)})
			one.present(t, mesh.Unsent.Name())

			late := join(t, dial(t, url), options("late")) // gets the list
			late.present(t, "a.held")
			require.NoError(t, one.Flush(soon(t)))
			assert.Equal(t, 300, late.sink.Count("a.held"))
		})
	}
	url, _ := plain(t, &server.Options{MaxPayload: 1000})
	_, err := mesh.Join(t.Context(), dial(t, url), signals.NewSink(signals.SinkOptions{}), options("one"))
	assert.ErrorContains(t, err, "max_payload")
}

// A server that comes back with another limit: what fits no more ends elsewhere, and stands again when it fits again.
func TestMaxPayloadChanges(t *testing.T) {
	t.Parallel()
	url, stop := plain(t, &server.Options{})
	opts := options("one")
	opts.Lease = lease
	one := join(t, dial(t, url), opts)
	opts.Name = "two"
	two := join(t, dial(t, url), opts)
	one.sink.Hold("a.large", strings.Repeat("x", 20_000), 0)
	one.sink.Hold("a.small", "", 0)
	two.present(t, "a.small")
	two.present(t, "a.large")
	var port int
	fmt.Sscanf(url, "nats://127.0.0.1:%d", &port)
	stop()
	_, stop = plain(t, &server.Options{Port: port, MaxPayload: 4 << 10})
	two.gone(t, "a.large")
	one.present(t, mesh.Unsent.Name())
	two.present(t, "a.small")
	assert.Equal(t, 1, one.Stats().Held)
	stop()
	plain(t, &server.Options{Port: port})
	two.present(t, "a.large")
	one.gone(t, mesh.SignalAlone) // Flush waits for those it hears
	var missed *mesh.MissedError
	assert.ErrorAs(t, one.Flush(soon(t)), &missed, "it did not stand for a while")
	require.NoError(t, one.Flush(soon(t)))
	assert.True(t, two.sink.Has("a.small"))
}

// A user who may not publish or subscribe cannot join.
func TestPermissions(t *testing.T) {
	t.Parallel()
	deny := &server.SubjectPermission{Deny: []string{"ephemeral.mesh.>"}}
	user := func(name string, p *server.Permissions) *server.User {
		return &server.User{Username: name, Password: "p", Permissions: p}
	}
	facts := &server.SubjectPermission{Deny: []string{"ephemeral.mesh.v1.test.all.facts.*"}}
	url, _ := plain(t, &server.Options{Users: []*server.User{
		user("all", nil), user("listener", &server.Permissions{Subscribe: deny}),
		user("mute", &server.Permissions{Publish: deny}), user("facts", &server.Permissions{Publish: facts}),
	}})
	for _, name := range []string{"listener", "mute", "facts"} {
		_, err := mesh.Join(soon(t), dial(t, url, nats.UserInfo(name, "p")), signals.NewSink(signals.SinkOptions{}), options(name))
		assert.ErrorIs(t, err, nats.ErrPermissionViolation, name)
	}
	conn := dial(t, url, nats.UserInfo("listener", "p"))
	for range 2 {
		_, err := mesh.Join(soon(t), conn, signals.NewSink(signals.SinkOptions{}), options("listener"))
		assert.ErrorIs(t, err, nats.ErrPermissionViolation, "again on one connection")
	}
	other := options("other")
	one := join(t, dial(t, url, nats.UserInfo("all", "p")), options("one"))
	join(t, dial(t, url, nats.UserInfo("all", "p")), other)
	one.gone(t, mesh.SignalAlone)
	_, err := nats.Connect(url, nats.UserInfo("all", "wrong"))
	assert.ErrorIs(t, err, nats.ErrAuthorization)
	wrong, err := nats.Connect(url, nats.UserInfo("all", "wrong"), nats.RetryOnFailedConnect(true), nats.ReconnectWait(10*time.Millisecond))
	require.NoError(t, err)
	defer wrong.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = mesh.Join(ctx, wrong, signals.NewSink(signals.SinkOptions{}), options("wrong"))
	assert.ErrorContains(t, err, "no answer")
}

// A server that goes away during Join, Flush and Close.
func TestServerGone(t *testing.T) {
	t.Parallel()
	url, stop := plain(t, &server.Options{})
	opts := options("one")
	opts.Lease = lease
	conn := dial(t, url)
	one := join(t, conn, opts)
	opts.Name = "two"
	two := join(t, dial(t, url), opts)
	one.gone(t, mesh.SignalAlone)
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := mesh.Join(ctx, conn, signals.NewSink(signals.SinkOptions{}), opts)
	assert.ErrorContains(t, err, "no answer")
	one.sink.Hold("a.held", "", 0)
	assert.ErrorIs(t, one.Flush(ctx), context.DeadlineExceeded)
	one.present(t, mesh.SignalAlone)
	begun := time.Now()
	assert.NoError(t, two.Close())
	assert.Less(t, time.Since(begun), 10*time.Second)

	conn.Close()
	before := one.Stats()
	one.sink.Raise("a.fact")
	one.present(t, mesh.Unsent.Name())
	assert.Equal(t, before.Sent, one.Stats().Sent)
	assert.NoError(t, one.Close())
	_, err = mesh.Join(t.Context(), conn, signals.NewSink(signals.SinkOptions{}), opts)
	assert.ErrorIs(t, err, nats.ErrConnectionClosed)
}
