-- Neither the tokens of leases nor the request ids that they are made from can be read here.
ALTER TABLE server ADD COLUMN token_secret TEXT NOT NULL DEFAULT '';
UPDATE server SET token_secret = lower(hex(randomblob(16)));
UPDATE attempt SET token = sha256(token);
UPDATE idempotency SET request_id = sha256(request_id);
