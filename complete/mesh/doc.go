// Package mesh shows what the modules that link the client of NATS export, under the names
// that they would have in package complete: atoms/mesh. It is a separate package, so that
// programs that import complete do not link the client.
package mesh
