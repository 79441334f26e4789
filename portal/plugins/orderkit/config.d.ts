export interface Config {
  orderkit?: {
    /**
     * The endpoint of the portal's proxy that leads to Orderkit's service; /orderkit if absent.
     * @visibility frontend
     */
    proxyEndpoint?: string;
  };
}
