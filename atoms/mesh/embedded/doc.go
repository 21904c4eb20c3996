// Package embedded runs a NATS server in this process, for a mesh without other programs.
//
//	server, err := embedded.New(ctx, embedded.Options{
//		Listen: ":6222",
//		Peers:  []string{"shop-1:6222", "shop-2:6222", "shop-3:6222"}, // the same list everywhere
//		Secret: secret,
//	})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	m, err := mesh.Join(ctx, server.Conn(), sink, mesh.Options{Cluster: "shop", Share: "payment.*"})
//
// The server is nats-server without storage. Servers connect to each other, and each process
// talks to its own through memory. A program without a server connects to Clients.
package embedded
