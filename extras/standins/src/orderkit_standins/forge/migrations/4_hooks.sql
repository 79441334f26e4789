CREATE TABLE hooks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER REFERENCES repositories(id) ON DELETE CASCADE,
  owner_id INTEGER REFERENCES accounts(id) ON DELETE CASCADE,
  url TEXT NOT NULL,
  content_type TEXT NOT NULL,
  name TEXT NOT NULL,
  secret TEXT NOT NULL,
  events TEXT NOT NULL,
  branch_filter TEXT NOT NULL,
  authorization TEXT NOT NULL,
  active INTEGER NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL
);
CREATE INDEX hooks_of_repository ON hooks (repo_id);
CREATE INDEX hooks_of_owner ON hooks (owner_id);
