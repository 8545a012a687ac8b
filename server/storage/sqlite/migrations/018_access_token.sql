-- Who may reach the server from other machines. Of a secret only the digest of the public key that
-- is derived from it is kept: it proves nothing.
CREATE TABLE access_token (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,                -- several rows after a rotation; the last one is the current
  role TEXT NOT NULL,
  key_sha256 TEXT NOT NULL UNIQUE,   -- hexadecimal
  created INTEGER NOT NULL,
  expires INTEGER,                   -- NULL: never
  revoked INTEGER                    -- NULL: it is not
);
