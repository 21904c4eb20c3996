// Package sqlite keeps the values of a [data.Store] in a table of a SQLite file. The file may
// have other tables, of other stores or of your own, and other processes may use it.
//
// There is no loss window: what a method has changed when it returns nil survives a crash and a
// power cut, if the disk keeps what it has synced.
//
// # The table
//
// The name of the store is the name of the table:
//
//	create table "orders" (key blob not null primary key, value any not null) strict
//
// It is a table with rowids, because values may be large: to count and to list keys SQLite
// reads the index of the keys and no values. Keys are compared as bytes. A value that is UTF-8 without the byte 0, which all JSON is,
// is kept as TEXT, and any other as a BLOB; so SQLite's functions can read JSON:
//
//	select cast(key as text), value ->> '$.total' from orders where value ->> '$.status' = 'open'
//
// Other programs may write to the table, with keys that are blobs: cast('order-1' as blob).
// There are no columns of times: put a time into the value if you need it.
package sqlite
