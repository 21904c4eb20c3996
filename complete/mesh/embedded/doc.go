// Package embedded shows what the modules that link the server of NATS export, under the names
// that they would have in package complete: atoms/mesh/embedded. It is a separate package, so
// that programs that import complete do not link the server.
package embedded
