ALTER TABLE accounts ADD COLUMN moving_to TEXT NOT NULL DEFAULT '';
ALTER TABLE repositories ADD COLUMN moving_to TEXT NOT NULL DEFAULT '';
CREATE TABLE account_redirects (
  lower_name TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE
);
CREATE TABLE repository_redirects (
  owner_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  lower_name TEXT NOT NULL,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  PRIMARY KEY (owner_id, lower_name)
);
