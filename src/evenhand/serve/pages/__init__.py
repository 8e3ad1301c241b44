"""The pages' addresses: thin routes over the service, which hand values to `evenhand.pages`."""
