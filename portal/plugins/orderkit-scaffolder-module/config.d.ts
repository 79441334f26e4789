export interface Config {
  orderkit?: {
    /**
     * The endpoint below `proxy.endpoints` that leads to Orderkit's service; default: /orderkit.
     */
    proxyEndpoint?: string;
  };
}
