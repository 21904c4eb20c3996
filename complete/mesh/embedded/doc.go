// Package embedded is the part of package complete for a NATS server in the process. It has
// what atoms/mesh/embedded exports, under the names that they would have in package complete.
// It is a separate package, so that programs that import complete do not link the server.
package embedded
